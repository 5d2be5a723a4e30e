//! A server as what a window of measurement loads.

use super::target::Target;
use crate::interrupt::Interrupt;
use crate::server::counters::SemiSync;
use crate::window::{Place, Source};
use rig::usage::Usage;

impl Source for Target {
    fn usage(&self) -> anyhow::Result<Option<Usage>> {
        self.pid().map(Usage::of).transpose()
    }

    fn drop_dumps(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        Target::drop_dumps(self, interrupt)
    }

    fn begin_log(&mut self) -> anyhow::Result<Place> {
        Target::begin_log(self)
    }

    fn log_bytes(&mut self) -> anyhow::Result<u64> {
        Target::log_bytes(self)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        Target::set(self, name, value)
    }

    fn is_not(&mut self, wanted: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
        Target::is_not(self, wanted)
    }

    fn set_semi_sync(&mut self, wanted: bool) -> anyhow::Result<()> {
        Target::set_semi_sync(self, wanted)
    }

    fn semi_sync(&mut self) -> anyhow::Result<SemiSync> {
        Target::semi_sync(self)
    }

    fn commit_probes(&mut self) -> anyhow::Result<()> {
        Target::commit_probes(self)
    }
}
