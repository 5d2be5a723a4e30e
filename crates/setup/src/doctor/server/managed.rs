//! A server that a provider runs: what doctor says of it.

use super::facts::Facts;
use super::provider::Provider;
use crate::doctor::finding::Finding;

/// Source: AWS, "Setting and showing binary log configuration": hours, on RDS at most 168, on Aurora 2160.
const RETENTION: &str = "CALL mysql.rds_set_configuration('binlog retention hours', 168);";

/// That semi-sync is wanted where it cannot be had.
pub(super) fn without_semi_sync(provider: Provider) -> Finding {
    Finding::warning(format!("semi-sync: not to be had on {}", provider.name())).because(
            "nobody has SUPER there, and semi-sync with a replica of one's own was not found in its documentation: binlogd receives without \
             acknowledging, and a crash can lose what was committed since the last bytes arrived. Say so in the configuration: \
             semi_sync = false",
        )
}

/// That it is such a server, and what its binary logs are kept by.
pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let Some(provider) = facts.provider() else { return Vec::new() };
    let told = Finding::warning(format!(
        "server: {}, with which binlogd was never tried",
        provider.name()
    ))
    .because(format!(
        "what is said of it here is from its documentation (docs/sources.md). SET GLOBAL and SET PERSIST are refused there: settings \
         are made in {}. Plan for a copy, without acknowledgements",
        provider.settings()
    ));
    vec![told]
}

/// How long logs are kept, where no variable says so.
pub(super) fn retention(facts: &Facts) -> Option<Finding> {
    let why = match facts.provider()? {
        Provider::Rds => {
            "nothing is kept by default: what binlogd has not copied when a file ends may be gone. 168 hours is the most on RDS for MySQL"
        }
        Provider::Aurora => "seldom longer than a day by default. 2160 hours is the most",
        Provider::CloudSql | Provider::Azure => return None,
    };
    let what = "retention: decided by 'binlog retention hours' there, which no variable shows";
    let shows = "CALL mysql.rds_show_configuration shows it to an administrator";
    Some(Finding::warning(what).because(format!("{why}. {shows}")).fixed_by(RETENTION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::server::provider::{AAD_AUTH_ONLY, AURORA_VERSION, BASEDIR};
    use crate::doctor::test_facts::{mariadb, mysql, wanted, with};
    use crate::doctor::{Level, Wanted, examine as examine_all};

    fn of_version(version: &str) -> Facts {
        Facts { version: version.to_owned(), ..mysql() }
    }

    fn of_google(version: &str) -> Facts {
        with(of_version(version), "version_comment", Some("(Google)"))
    }

    #[test]
    fn each_provider_is_told_by_what_its_servers_print() {
        let rds = |facts| with(facts, BASEDIR, Some("/rdsdbbin/mysql-8.0.36.R2/"));
        let aurora = with(rds(mysql()), AURORA_VERSION, Some("3.05.2"));
        for (facts, provider) in [
            (rds(mysql()), Provider::Rds),
            (rds(mariadb()), Provider::Rds),
            (aurora, Provider::Aurora),
            (of_google("8.0.31-google"), Provider::CloudSql),
            (of_google("5.7.14-google-log"), Provider::CloudSql),
            (of_version("8.0.40-azure"), Provider::Azure),
            (of_version("5.7.44-azure-log"), Provider::Azure),
            (with(mysql(), AAD_AUTH_ONLY, Some("OFF")), Provider::Azure),
        ] {
            assert_eq!(facts.provider(), Some(provider));
            // Switched on it is looked at, as anywhere.
            let text = format!("{:?}", examine_all(&facts, &wanted()));
            assert!(text.contains("never tried") && text.contains("_enabled is ON"), "{text}");
            let off = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
            let facts = off.iter().fold(facts, |facts, name| with(facts, name, None));
            let findings = examine_all(&facts, &wanted());
            let text = format!("{findings:?}");
            assert!(text.contains(provider.name()) && text.contains("never tried"), "{text}");
            let has_none = findings.iter().filter(|finding| finding.what.starts_with("semi-sync")).count();
            assert_eq!((has_none, text.contains("without acknowledging")), (1, true), "{text}");
            let is_amazons = matches!(provider, Provider::Rds | Provider::Aurora);
            assert_eq!(text.contains("CALL mysql.rds_set_configuration"), is_amazons, "{text}");
        }
        for facts in [
            mysql(),
            mariadb(),
            with(mysql(), BASEDIR, Some("/usr/")),
            of_version("8.0.36-google-fork"),
            with(mysql(), "version_comment", Some("(Google)")),
            of_version("8.0.36-azure-vm1"),
        ] {
            assert_eq!(facts.provider(), None);
        }
    }

    #[test]
    fn no_statement_is_printed_that_is_refused_there() {
        let wrong = [
            ("binlog_format", "MIXED"),
            ("binlog_row_image", "MINIMAL"),
            ("gtid_mode", "OFF"),
            ("sync_binlog", "0"),
            ("binlog_expire_logs_seconds", "60"),
        ];
        for managed in [of_version("8.0.40-azure"), with(mysql(), BASEDIR, Some("/rdsdbbin/mysql/"))] {
            let facts = wrong.iter().fold(managed, |facts, (name, value)| with(facts, name, Some(value)));
            let findings = examine_all(&facts, &Wanted { semi_sync: false, ..wanted() });
            let sql: Vec<&str> = findings.iter().filter_map(|finding| finding.sql.as_deref()).collect();
            assert!(sql.len() >= wrong.len() && findings.iter().all(|finding| finding.level < Level::Error));
            let lines: Vec<&str> = sql.iter().flat_map(|sql| sql.lines()).collect();
            assert!(
                lines.iter().all(|line| line.starts_with("-- in the ") || *line == RETENTION),
                "{lines:#?}"
            );
            assert!(lines.iter().any(|line| line.ends_with(": binlog_row_image = FULL")), "{lines:#?}");
        }
    }
}
