//! Runs read back from the CSV that a report has written, in its folder or packed: to report or compare here what was
//! measured elsewhere.

use super::csv;
use crate::model::{Fact, Measured, Order};
use crate::point::{CellKey, Panel, Point};
use crate::results::run::{Cell, Run, Skipped};
use ::csv::{Reader, StringRecord};
use anyhow::{Context, bail};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// What the name of a run's facts ends with; its cells have `.csv` there.
pub(super) const FACTS: &str = "-facts.csv";

/// What the name of its samples ends with.
pub(super) const SERIES: &str = "-series.csv";

/// The runs of a folder that [`super::write`] has written into, or of an archive of such a folder's files that `tar` unpacks
/// (`.tar`, `.tar.gz`, `.tar.zst`), by their numbers. The samples may be missing, they are most of the bytes: then the runs have
/// none.
///
/// # Errors
/// When there is no run, a file cannot be read or unpacked, or is not as a report writes it; the error names the file.
pub fn runs(place: &Path) -> anyhow::Result<Vec<Run>> {
    if !place.is_file() {
        return of_folder(place);
    }
    let unpacked = tempfile::tempdir()?;
    let done = Command::new("tar").arg("-xf").arg(place).arg("-C").arg(unpacked.path()).output();
    let done = done.context("cannot start tar, which unpacks the runs")?;
    if !done.status.success() {
        let complaint = String::from_utf8_lossy(&done.stderr);
        bail!("{} is no archive of runs that tar can unpack: {}", place.display(), complaint.trim());
    }
    of_folder(unpacked.path()).with_context(|| format!("the runs packed in {}", place.display()))
}

fn of_folder(dir: &Path) -> anyhow::Result<Vec<Run>> {
    let cannot = || format!("cannot read the folder {}", dir.display());
    let mut runs = Vec::new();
    for entry in fs::read_dir(dir).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if let Some(name) = path.to_str().and_then(|name| name.strip_suffix(FACTS)) {
            runs.push(run(&path, name)?);
        }
    }
    if runs.is_empty() {
        bail!("{} holds no run: no file there is called run-…{FACTS}, as `report` writes it", dir.display());
    }
    runs.sort_by_key(|run| run.id);
    Ok(runs)
}

fn run(facts: &Path, name: &str) -> anyhow::Result<Run> {
    let mut run = of_facts(facts).with_context(|| wrong(facts))?;
    let cells = PathBuf::from(format!("{name}.csv"));
    run.cells = of_cells(&cells).with_context(|| wrong(&cells))?;
    let series = PathBuf::from(format!("{name}{SERIES}"));
    if series.exists() {
        add_series(&mut run.cells, &series).with_context(|| wrong(&series))?;
    }
    Ok(run)
}

fn wrong(path: &Path) -> String {
    format!("{} cannot be read as a part of a report", path.display())
}

fn of_facts(path: &Path) -> anyhow::Result<Run> {
    let mut own: HashMap<String, String> = HashMap::new();
    let (mut facts, mut skipped) = (Vec::new(), Vec::new());
    let (lines, _) = Lines::of(path, &csv::FACT_HEADS)?;
    for line in lines {
        let line = line?;
        let [kind, about, name, value] = [0, 1, 2, 3].map(|column| &line.0[column]);
        match kind {
            csv::RUN => drop(own.insert(name.to_owned(), value.to_owned())),
            csv::SKIPPED => skipped.push(Skipped::new(about, value)),
            csv::FACT => facts.push(Fact::new(about, name, value)),
            other => bail!("line {}: there is no kind {other:?}", line.number()),
        }
    }
    let mut take = |name: &str| own.remove(name);
    let finished = take(csv::FINISHED).map(|text| number(csv::FINISHED, &text)).transpose()?;
    let mut take =
        |name: &'static str| take(name).with_context(|| format!("it does not say the run's {name}"));
    Ok(Run {
        id: number(csv::NUMBER, &take(csv::NUMBER)?)?,
        study: take(csv::STUDY)?,
        order: serde_json::from_str::<Order>(&take(csv::ORDERED)?).context("what was ordered")?,
        command: take(csv::COMMAND)?,
        started: number(csv::STARTED, &take(csv::STARTED)?)?,
        finished,
        facts,
        cells: Vec::new(),
        skipped,
    })
}

fn of_cells(path: &Path) -> anyhow::Result<Vec<Cell>> {
    let (lines, heads) = Lines::of(path, &csv::KEY)?;
    let values = csv::KEY.len() + 1;
    if heads.get(values - 1) != Some(csv::INVALID) {
        bail!("after the column {} comes none called {}", csv::KEY[csv::KEY.len() - 1], csv::INVALID);
    }
    let mut cells = Vec::new();
    for line in lines {
        let line = line?;
        let invalid = &line.0[values - 1];
        let mut measured =
            Measured { invalid: (!invalid.is_empty()).then(|| invalid.to_owned()), ..Measured::default() };
        for (name, text) in heads.iter().zip(&line.0).skip(values).filter(|(_, text)| !text.is_empty()) {
            measured.put(name, line.number_in(name, text)?);
        }
        let [started, took] = [&line.0[7], &line.0[8]];
        cells.push(Cell {
            key: line.key()?,
            started: line.number_in(csv::KEY[7], started)?,
            took: line.number_in(csv::KEY[8], took)?,
            measured,
        });
    }
    Ok(cells)
}

fn add_series(cells: &mut [Cell], path: &Path) -> anyhow::Result<()> {
    let heads: Vec<&str> = csv::KEY.into_iter().chain(csv::SAMPLE).collect();
    let (lines, _) = Lines::of(path, &heads)?;
    for line in lines {
        let line = line?;
        let key = line.key()?;
        let cell = cells.iter_mut().find(|cell| cell.key == key);
        let cell = cell.with_context(|| format!("line {}: the run has no such cell", line.number()))?;
        let [name, sample, value] = [9, 10, 11].map(|column| &line.0[column]);
        let series = cell.measured.series.entry(name.to_owned()).or_default();
        if line.number_in::<usize>(csv::SAMPLE[1], sample)? != series.len() {
            bail!("line {}: sample {sample} does not follow the one before", line.number());
        }
        series.push(line.number_in(csv::SAMPLE[2], value)?);
    }
    Ok(())
}

/// The lines of a file below its head.
struct Lines(Reader<File>);

impl Lines {
    /// With the head, which begins with these columns.
    fn of(path: &Path, columns: &[&str]) -> anyhow::Result<(Lines, StringRecord)> {
        let mut reader = Reader::from_path(path)?;
        let heads = reader.headers()?.clone();
        if !heads.iter().take(columns.len()).eq(columns.iter().copied()) {
            bail!("its columns are not {}", columns.join(", "));
        }
        Ok((Lines(reader), heads))
    }
}

impl Iterator for Lines {
    type Item = anyhow::Result<Line>;

    fn next(&mut self) -> Option<anyhow::Result<Line>> {
        let mut record = StringRecord::new();
        match self.0.read_record(&mut record) {
            Ok(true) => Some(Ok(Line(record))),
            Ok(false) => None,
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// A line, which has as many fields as the head.
struct Line(StringRecord);

impl Line {
    fn number(&self) -> u64 {
        self.0.position().map_or(0, ::csv::Position::line)
    }

    fn number_in<T: FromStr>(&self, name: &str, text: &str) -> anyhow::Result<T> {
        number(name, text).with_context(|| format!("line {}", self.number()))
    }

    /// The cell that the line is about.
    fn key(&self) -> anyhow::Result<CellKey> {
        let [server, condition, configuration, threads, round] =
            [2, 3, 4, 5, 6].map(|column| &self.0[column]);
        let named = || format!("line {}", self.number());
        let panel = Panel { server: server.to_owned(), condition: condition.parse().with_context(named)? };
        let point = Point {
            panel,
            configuration: configuration.parse().with_context(named)?,
            threads: self.number_in(csv::KEY[5], threads)?,
        };
        Ok(CellKey { point, round: self.number_in(csv::KEY[6], round)? })
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> anyhow::Result<T> {
    text.parse().ok().with_context(|| format!("{name} is no such number: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{self, example};

    fn written() -> (tempfile::TempDir, Vec<Run>) {
        let mut first = example::virtual_replica();
        first.cells[0].measured.refuse("an error, \"quoted\"\nover two lines");
        first.cells[1].measured.values.remove("tps");
        first.cells[2].measured.series.insert("tps".to_owned(), vec![1.5, 0.0, 0.1 + 0.2]);
        let mut second = Run { id: 10, finished: None, ..first.clone() };
        second.cells.iter_mut().for_each(|cell| cell.measured.series.clear());
        let dir = tempfile::tempdir().unwrap();
        let runs = vec![first, second];
        report::write(&runs, dir.path()).unwrap();
        (dir, runs)
    }

    #[test]
    fn a_run_comes_back_as_it_was_written() {
        let (dir, written) = written();
        assert_eq!(runs(dir.path()).unwrap(), written);
        fs::remove_file(dir.path().join("run-7-virtual-replica-series.csv")).unwrap();
        let read = runs(dir.path()).unwrap();
        assert!(read[0].cells[2].measured.series.is_empty() && read[0].cells[2].measured.values.len() == 2);
    }

    /// Made again: `binlogd-lab report --from docs/lab-runs/runs.tar.gz --out DIR`, and the pictures of `DIR/charts` that stand in
    /// docs/lab-runs.
    #[test]
    fn the_committed_pictures_are_made_of_the_committed_cells_and_these_are_written_as_they_were_read() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab-runs");
        let packed = runs(&docs.join("runs.tar.gz")).unwrap();
        // As `import` counts them.
        assert!(packed.iter().map(|run| run.id).eq(1..=packed.len() as i64));
        let dir = tempfile::tempdir().unwrap();
        report::write(&packed, dir.path()).unwrap();
        assert_eq!(runs(dir.path()).unwrap(), packed);
        let mut pictures = 0;
        for entry in fs::read_dir(&docs).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".svg") {
                pictures += 1;
                let [committed, made] =
                    [docs.join(&name), dir.path().join("charts").join(&name)].map(|path| {
                        fs::read_to_string(&path)
                            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
                    });
                assert!(committed == made, "docs/lab-runs/{name} is to be made again");
            }
        }
        assert!(pictures >= 3, "only {pictures} pictures");
    }

    #[test]
    fn a_file_that_cannot_be_unpacked_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.tar.gz");
        fs::write(&path, "no archive").unwrap();
        let error = format!("{:#}", runs(&path).unwrap_err());
        assert!(error.contains("runs.tar.gz is no archive of runs"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_file_and_line() {
        let (dir, _) = written();
        let says = |name: &str, from: &str, to: &str, expected: &str| {
            let path = dir.path().join(name);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{name} has no {from}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let error = format!("{:#}", runs(dir.path()).unwrap_err());
            assert!(error.contains(name) && error.contains(expected), "{error}");
            fs::write(&path, text).unwrap();
        };
        let (cells, facts) = ("run-10-virtual-replica.csv", "run-10-virtual-replica-facts.csv");
        says(cells, "took_s", "took", "its columns are not run, study");
        says(cells, ",invalid,", ",valid,", "none called invalid");
        says(
            cells,
            ",source alone,",
            ",source aside,",
            "line 2: no study has the configuration \"source aside\"",
        );
        says(cells, ",5.25,", ",soon,", "took_s is no such number: \"soon\"");
        says(cells, ",5.25,", ",", "record");
        says(facts, "run,,command", "run,,order", "it does not say the run's command");
        says(facts, "run,,started", "ran,,started", "line 6: there is no kind \"ran\"");
        says("run-7-virtual-replica-series.csv", ",tps,1,", ",tps,2,", "sample 2 does not follow");
        fs::remove_file(dir.path().join(cells)).unwrap();
        let error = format!("{:#}", runs(dir.path()).unwrap_err());
        assert!(error.contains(cells), "{error}");
        let empty = tempfile::tempdir().unwrap();
        assert!(runs(empty.path()).unwrap_err().to_string().contains("holds no run"));
    }
}
