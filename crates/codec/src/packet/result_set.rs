//! Text result sets: what COM_QUERY answers.
//!
//! The session has neither CLIENT_DEPRECATE_EOF nor CLIENT_MULTI_RESULTS, so that an answer is one of: OK, ERR, or a
//! column count, that many column definitions, EOF, rows, EOF (or ERR in place of a row).
//!
//! Source: MySQL Source Code Documentation, "COM_QUERY Response" and "Text Resultset".

use super::cursor::{Cursor, MalformedPacket};
use super::response::{self, ErrPacket, OkPacket, printable};
use std::collections::BTreeMap;

/// The most columns accepted. MySQL's own limit for a table is 4096 (`MAX_FIELDS` in sql_const.h).
pub const COLUMNS_MAX: usize = 4096;

/// The most memory that one result set may take, in bytes, bookkeeping included.
pub const RESULT_SET_BYTES_MAX: usize = 64 << 20;

/// The longest column name kept, in bytes. MySQL's own limit for an alias is 256 characters.
const COLUMN_NAME_BYTES_MAX: usize = 1024;

/// First byte of a request to send a local file, which is never granted.
const LOCAL_INFILE: u8 = 0xFB;

/// The rows of a statement, empty for one that gives none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Names of the columns, in order.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`; `None` is NULL. Values are text as the server writes it.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl ResultSet {
    /// The first column of the first row, if it is there, not NULL, and UTF-8.
    pub fn first(&self) -> Option<&str> {
        self.cell(0, 0)
    }

    /// The named column of a row, if both exist and the value is not NULL and UTF-8. The case of the name is ignored.
    pub fn get(&self, row: usize, column: &str) -> Option<&str> {
        let column = self.columns.iter().position(|name| name.eq_ignore_ascii_case(column))?;
        self.cell(row, column)
    }

    /// The answer of SHOW VARIABLES or SHOW STATUS: names in lower case, and their values.
    ///
    /// # Errors
    /// Which one cannot be read: that is not one that the server does not have.
    pub fn variables(&self) -> Result<BTreeMap<String, String>, String> {
        let variable = |row| {
            let (name, value) = (self.get(row, "Variable_name"), self.get(row, "Value"));
            let pair = name.zip(value).map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
            pair.ok_or_else(|| format!("the variable {name:?} has the value {value:?}"))
        };
        (0..self.rows.len()).map(variable).collect()
    }

    fn cell(&self, row: usize, column: usize) -> Option<&str> {
        std::str::from_utf8(self.rows.get(row)?.get(column)?.as_deref()?).ok()
    }
}

/// How a statement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryResponse {
    /// It succeeded without rows.
    Ok(OkPacket),
    /// It failed; rows that came before are dropped.
    Err(ErrPacket),
    /// It gave rows.
    Rows(ResultSet),
}

/// The answer to a query is not of its form, or too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultSetError {
    /// A packet of the answer is not of its form.
    #[error(transparent)]
    Malformed(#[from] MalformedPacket),
    /// More columns than [`COLUMNS_MAX`].
    #[error("the result set has {0} columns, more than the {COLUMNS_MAX} accepted")]
    TooManyColumns(u64),
    /// More data than [`RESULT_SET_BYTES_MAX`].
    #[error("the result set is larger than the {RESULT_SET_BYTES_MAX} bytes accepted")]
    TooLarge,
    /// The server asks for a file of this machine.
    #[error("the server asked for a local file, which is never sent")]
    LocalFileRequested,
    /// Something else than EOF ends the column definitions.
    #[error("the column definitions are not followed by an EOF packet")]
    MissingEof,
}

#[derive(Debug)]
enum State {
    Start,
    /// That many definitions are still to come, then EOF.
    Columns(usize),
    Rows,
}

/// Collects a [`QueryResponse`] from the messages of an answer, in order.
#[derive(Debug)]
pub struct QueryResponseReader {
    state: State,
    result: ResultSet,
    /// Memory that `result` takes, roughly, in bytes. Always <= RESULT_SET_BYTES_MAX.
    size: usize,
    more_follow: bool,
}

impl Default for QueryResponseReader {
    fn default() -> Self {
        Self::new()
    }
}

impl QueryResponseReader {
    /// A reader that waits for the first message.
    pub fn new() -> Self {
        Self { state: State::Start, result: ResultSet::default(), size: 0, more_follow: false }
    }

    /// Whether the server said with the response that the answer to another statement of the same packet follows.
    pub fn more_follow(&self) -> bool {
        self.more_follow
    }

    /// Takes the next message; gives the response when it was the last one.
    pub fn push(&mut self, message: &[u8]) -> Result<Option<QueryResponse>, ResultSetError> {
        if response::is_err(message) {
            return Ok(Some(QueryResponse::Err(ErrPacket::parse(message)?)));
        }
        match self.state {
            State::Start => self.start(message),
            State::Columns(0) if response::is_eof(message) => {
                self.state = State::Rows;
                Ok(None)
            }
            State::Columns(0) => Err(ResultSetError::MissingEof),
            State::Columns(missing) => {
                let name = column_name(message)?;
                self.charge(name.len() + size_of::<String>())?;
                self.result.columns.push(name);
                self.state = State::Columns(missing - 1);
                Ok(None)
            }
            State::Rows if response::is_eof(message) => {
                self.more_follow = response::more_results(response::eof_status(message));
                Ok(Some(QueryResponse::Rows(std::mem::take(&mut self.result))))
            }
            State::Rows => {
                let cells = self.result.columns.len();
                self.charge(message.len() + (cells + 1) * size_of::<Option<Vec<u8>>>())?;
                self.result.rows.push(text_row(message, cells)?);
                Ok(None)
            }
        }
    }

    fn start(&mut self, message: &[u8]) -> Result<Option<QueryResponse>, ResultSetError> {
        match message.first() {
            Some(&response::OK) => {
                let ok = OkPacket::parse(message)?;
                self.more_follow = response::more_results(ok.status);
                return Ok(Some(QueryResponse::Ok(ok)));
            }
            Some(&LOCAL_INFILE) => return Err(ResultSetError::LocalFileRequested),
            _ => {}
        }
        let count = Cursor::new(message).length_encoded_integer("the count of columns")?;
        match usize::try_from(count) {
            Ok(count) if count <= COLUMNS_MAX => {
                self.state = State::Columns(count);
                Ok(None)
            }
            _ => Err(ResultSetError::TooManyColumns(count)),
        }
    }

    fn charge(&mut self, bytes: usize) -> Result<(), ResultSetError> {
        self.size = self.size.saturating_add(bytes);
        if self.size > RESULT_SET_BYTES_MAX { Err(ResultSetError::TooLarge) } else { Ok(()) }
    }
}

/// The name in a column definition of protocol 4.1; the rest of it is of no interest to text results.
fn column_name(message: &[u8]) -> Result<String, MalformedPacket> {
    let mut cursor = Cursor::new(message);
    for field in ["the catalog", "the schema", "the table", "the original table"] {
        cursor.length_encoded_string(field)?;
    }
    let name = cursor.length_encoded_string("the column name")?.unwrap_or_default();
    Ok(printable(name, COLUMN_NAME_BYTES_MAX))
}

/// One row. Where it ends before its columns do, the rest is NULL: MySQL 5.7 and early 8.0 leave out the last column
/// of SHOW SLAVE HOSTS for a replica without a UUID (`show_slave_hosts` in sql/rpl_master.cc).
fn text_row(message: &[u8], cells: usize) -> Result<Vec<Option<Vec<u8>>>, MalformedPacket> {
    let mut cursor = Cursor::new(message);
    let mut row = Vec::with_capacity(cells);
    while row.len() < cells && !cursor.is_empty() {
        row.push(cursor.length_encoded_string("a value of the row")?.map(<[u8]>::to_vec));
    }
    row.resize(cells, None);
    if cursor.is_empty() { Ok(row) } else { Err(cursor.malformed("the end of the row")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EOF: &[u8] = b"\xFE\x00\x00\x02\x00";

    fn column(name: &str) -> Vec<u8> {
        let mut bytes = b"\x03def\x00\x00\x00".to_vec();
        bytes.push(name.len() as u8);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b"\x00\x0C\x3F\x00\x01\x00\x00\x00\x08\x81\x00\x00\x00\x00");
        bytes
    }

    fn read(messages: &[&[u8]]) -> Result<Option<QueryResponse>, ResultSetError> {
        let mut reader = QueryResponseReader::new();
        for message in messages {
            if let Some(response) = reader.push(message)? {
                return Ok(Some(response));
            }
        }
        Ok(None)
    }

    fn rows(messages: &[&[u8]]) -> ResultSet {
        match read(messages) {
            Ok(Some(QueryResponse::Rows(rows))) => rows,
            other => panic!("not rows: {other:?}"),
        }
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_not_one_that_is_absent() {
        let cell = |text: &[u8]| Some(text.to_vec());
        let rows = |value: Option<Vec<u8>>| ResultSet {
            columns: vec!["Variable_name".to_owned(), "Value".to_owned()],
            rows: vec![vec![cell(b"Log_bin"), value]],
        };
        assert_eq!(rows(cell(b"ON")).variables().unwrap()["log_bin"], "ON");
        for value in [None, cell(b"\xff")] {
            assert!(rows(value).variables().unwrap_err().contains("\"Log_bin\""));
        }
    }

    #[test]
    fn rows_with_null_and_empty_values() {
        let set =
            rows(&[b"\x02", &column("File"), &column("Position"), EOF, b"\x03abc\xFB", b"\x00\x0242", EOF]);
        assert_eq!(set.columns, ["File", "Position"]);
        assert_eq!(set.first(), Some("abc"));
        assert_eq!(set.get(0, "position"), None);
        assert_eq!(set.get(1, "file"), Some(""));
        assert_eq!(set.get(1, "POSITION"), Some("42"));
        assert_eq!(set.get(2, "File"), None);
        assert_eq!(set.get(0, "absent"), None);
    }

    #[test]
    fn a_row_without_its_last_column() {
        let set = rows(&[b"\x02", &column("Server_id"), &column("Slave_UUID"), EOF, b"\x017", EOF]);
        assert_eq!(set.rows, [[Some(b"7".to_vec()), None]]);
    }

    #[test]
    fn a_statement_without_rows() {
        let ok = OkPacket { affected_rows: 0, last_insert_id: 0, status: 2, warnings: 0 };
        assert_eq!(read(&[b"\0\0\0\x02\0\0\0"]), Ok(Some(QueryResponse::Ok(ok))));
    }

    #[test]
    fn the_server_says_whether_another_answer_follows() {
        let more = |messages: &[&[u8]]| {
            let mut reader = QueryResponseReader::new();
            let last = messages.iter().filter_map(|message| reader.push(message).unwrap()).count();
            assert_eq!(last, 1);
            reader.more_follow()
        };
        assert!(more(&[b"\0\0\0\x0A\0\0\0"]));
        assert!(!more(&[b"\0\0\0\x02\0\0\0"]));
        let followed = b"\xFE\x00\x00\x0A\x00";
        assert!(more(&[b"\x01", &column("a"), EOF, b"\x011", followed]));
        assert!(!more(&[b"\x01", &column("a"), followed, b"\x011", EOF]), "only the last one counts");
        assert!(!more(&[b"\xFF\x25\x05#70100interrupted"]));
    }

    #[test]
    fn an_error_in_the_middle_of_the_rows() {
        let response = read(&[b"\x01", &column("a"), EOF, b"\x011", b"\xFF\x25\x05#70100interrupted"]);
        let Ok(Some(QueryResponse::Err(err))) = response else { panic!("not an error: {response:?}") };
        assert_eq!(err.code, 1317);
    }

    #[test]
    fn a_first_value_of_16_mib_is_not_taken_for_eof() {
        let mut row = b"\xFE\x00\x00\x00\x01\x00\x00\x00\x00".to_vec();
        row.resize(row.len() + (1 << 24), b'x');
        let set = rows(&[b"\x01", &column("a"), EOF, &row, EOF]);
        assert_eq!(set.first().map(str::len), Some(1 << 24));
    }

    #[test]
    fn hostile_counts_and_requests_are_refused() {
        assert_eq!(read(&[b"\xFC\x01\x10"]), Err(ResultSetError::TooManyColumns(4097)));
        assert_eq!(
            read(&[b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"]),
            Err(ResultSetError::TooManyColumns(u64::MAX))
        );
        assert_eq!(read(&[b"\xFB/etc/passwd"]), Err(ResultSetError::LocalFileRequested));
        assert_eq!(read(&[b"\x01", &column("a"), b"\x011"]), Err(ResultSetError::MissingEof));
        assert!(matches!(read(&[b"\x01", &column("a"), EOF, b"\x011x"]), Err(ResultSetError::Malformed(_))));
        assert!(matches!(read(&[b""]), Err(ResultSetError::Malformed(_))));
    }

    #[test]
    fn endless_rows_of_nothing_hit_the_limit() {
        let mut reader = QueryResponseReader::new();
        reader.push(b"\xFC\x00\x10").unwrap();
        for _ in 0..COLUMNS_MAX {
            reader.push(&column("a")).unwrap();
        }
        reader.push(EOF).unwrap();
        let row = vec![0xFB; COLUMNS_MAX];
        let refused = (0..1_000_000).find_map(|_| reader.push(&row).err());
        assert_eq!(refused, Some(ResultSetError::TooLarge));
        assert!(reader.result.rows.len() < 1000);
    }

    proptest! {
        #[test]
        fn hostile_messages_never_panic(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..10),
        ) {
            let mut reader = QueryResponseReader::new();
            for message in &messages {
                if !matches!(reader.push(message), Ok(None)) {
                    break;
                }
            }
        }

        #[test]
        fn any_row_comes_back(values in proptest::collection::vec(
            proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)), 1..5,
        )) {
            let mut row = Vec::new();
            for value in &values {
                match value {
                    None => row.push(0xFB),
                    Some(bytes) => {
                        row.push(0xFC);
                        row.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                        row.extend_from_slice(bytes);
                    }
                }
            }
            prop_assert_eq!(text_row(&row, values.len()).unwrap(), values);
        }
    }
}
