//! In which of its two text formats Prometheus gets the metrics.
//!
//! prometheus-client writes OpenMetrics. The older format differs in the comment lines alone, as far as binlogd uses
//! either, so it is made from the other one.

use axum::http::{HeaderMap, header};
use std::fmt::Write;

/// Served in OpenMetrics alone: the lint of `promtool check metrics` wants base units, and `binlogd_disk_left_seconds`
/// is the same.
const OPEN_METRICS_ONLY: [&str; 1] = ["binlogd_disk_left_hours"];

/// A format of `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `application/openmetrics-text`, version 1.0.0: for those who ask for it, as a Prometheus server does.
    OpenMetrics,
    /// `text/plain`, version 0.0.4: for everybody else.
    Text,
}

impl Format {
    /// What the `Accept` headers of a request want most. Who accepts both as much gets OpenMetrics.
    pub(crate) fn wanted(headers: &HeaderMap) -> Format {
        let (mut open_metrics, mut text) = (0.0f32, 0.0f32);
        let mut ranges = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .peekable();
        if ranges.peek().is_none() {
            return Format::Text;
        }
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut quality, mut version) = (1.0f32, None);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = Some(value.trim().trim_matches('"')),
                    _ => {}
                }
            }
            match (media_type.as_str(), version) {
                ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                    open_metrics = open_metrics.max(quality);
                }
                ("text/plain", None | Some("0.0.4")) | ("text/*" | "*/*", _) => text = text.max(quality),
                _ => {}
            }
        }
        if open_metrics > 0.0 && open_metrics >= text { Format::OpenMetrics } else { Format::Text }
    }

    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// OpenMetrics text in this format.
    pub(crate) fn of(self, open_metrics: String) -> String {
        match self {
            Format::OpenMetrics => open_metrics,
            Format::Text => text_format(&open_metrics),
        }
    }
}

/// Source: Prometheus' "Exposition formats" and the OpenMetrics 1.0 specification. A counter has the name of its series
/// there, `…_total`; an info is a gauge that is always 1; a unit and an end are not said.
fn text_format(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    let mut left_out = false;
    for line in open_metrics.lines() {
        if let Some(comment) = line.strip_prefix("# HELP ") {
            help = comment.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((family, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            left_out = OPEN_METRICS_ONLY.contains(&family);
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                other => ("", other),
            };
            if !left_out {
                // Writing to a String does not fail.
                let _ = writeln!(text, "# HELP {family}{suffix} {help}\n# TYPE {family}{suffix} {kind}");
            }
        } else if !line.starts_with('#') && !left_out {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &[&str]) -> Format {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        Format::wanted(&headers)
    }

    #[test]
    fn who_asks_for_open_metrics_gets_it_and_everybody_else_text() {
        // As Prometheus 2.42 and 3.4 send it.
        for accept in [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            "application/openmetrics-text",
            "text/plain, Application/OpenMetrics-Text",
        ] {
            assert_eq!(wanted(&[accept]), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "text/plain",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.3,text/plain;q=0.9",
            "application/openmetrics-text;version=7.0.0,text/plain;q=0.1",
            "application/json",
            ";;;,=,",
            "",
        ] {
            assert_eq!(wanted(&[accept]), Format::Text, "{accept}");
        }
        assert_eq!(wanted(&[]), Format::Text);
        assert_eq!(wanted(&["text/plain;q=0.2", "application/openmetrics-text;q=0.4"]), Format::OpenMetrics);
    }

    #[test]
    fn the_text_format_names_counters_and_infos_by_their_series() {
        let open_metrics = "# HELP a_bytes How many\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{source=\"# x\"} 1\n\
             # HELP b What\n# TYPE b info\nb_info{v=\"1\"} 1\n\
             # HELP binlogd_disk_left_hours h\n# TYPE binlogd_disk_left_hours gauge\n# UNIT binlogd_disk_left_hours hours\n\
             binlogd_disk_left_hours 1.5\n\
             # HELP c_seconds Long\n# TYPE c_seconds histogram\nc_seconds_sum 0.0\n# EOF\n";
        assert_eq!(
            text_format(open_metrics),
            "# HELP a_bytes_total How many\n# TYPE a_bytes_total counter\na_bytes_total{source=\"# x\"} 1\n\
             # HELP b_info What\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n\
             # HELP c_seconds Long\n# TYPE c_seconds histogram\nc_seconds_sum 0.0\n"
        );
    }
}
