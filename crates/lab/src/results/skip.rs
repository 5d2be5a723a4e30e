//! Why a part of a run is left out.

use std::fmt;

/// When this is set in the environment, what a machine lacks is an error, as it is in the tests.
pub const NO_SKIPS: &str = "BINLOGD_NO_SKIPS";

/// Why a scene is left out. Context may be added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    why: String,
    may_always: bool,
}

impl Skip {
    /// Something is missing on this machine that somebody could install or allow.
    pub fn lacks(why: impl Into<String>) -> Skip {
        Skip { why: why.into(), may_always: false }
    }

    /// It cannot be otherwise here, so it is left out also where [`NO_SKIPS`] is set.
    pub fn by_nature(why: impl Into<String>) -> Skip {
        Skip { why: why.into(), may_always: true }
    }

    /// Whether the run may go on without the scene.
    pub fn is_allowed(&self) -> bool {
        self.may_always || std::env::var_os(NO_SKIPS).is_none()
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Skip {}
