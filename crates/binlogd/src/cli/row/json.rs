//! A row as JSON: exactly what the log says.

use crate::cli::find::answer::times;
use jiff::tz::TimeZone;
use past::{Answer, At, Change, History, Image, Item, NamedColumn, Note, State};
use serde_json::{Value as Json, json};

/// A row at a point.
pub(super) fn state(answer: &Answer) -> String {
    let (word, row) = match &answer.state {
        State::There { columns, values } => ("there", image(columns, Some(values))),
        State::NotThere => ("not there", Json::Null),
        State::NotKnown => ("not known", Json::Null),
    };
    let of = |made: &Option<Box<Change>>| made.as_deref().map_or(Json::Null, change);
    line(&json!({
        "state": word, "row": row, "made_by": of(&answer.made_by), "made_so": answer.made_so.as_ref().map(note),
        "next": of(&answer.next), "doubts": answer.doubts, "notes": answer.notes,
    }))
}

/// All that became of it.
pub(super) fn history(history: &History) -> String {
    let item = |item: &Item| match item {
        Item::Change { change: one, no_effect, unlike_next } => {
            let mut all = change(one);
            all["no_effect"] = json!(no_effect);
            all["unlike_next"] = json!(unlike_next);
            all
        }
        Item::Definition(one) => json!({"definition": note(one)}),
        Item::Unseen(one) => json!({"unseen": note(one)}),
    };
    let older = history.older.as_ref();
    line(&json!({
        "changes": history.items.iter().map(item).collect::<Json>(),
        "older": older.map(|older| json!({"table": older.table.to_string(), "key": older.key.text(), "at": older.at})),
        "edge": history.edge, "doubts": history.doubts, "other_keys": history.near,
    }))
}

fn line(json: &Json) -> String {
    format!("{json:#}\n")
}

fn place(at: &At) -> Json {
    let (committed, committed_local) = times(&at.committed, &TimeZone::system());
    json!({
        "gtid": at.gtid, "committed": committed, "committed_local": committed_local, "committed_exact": at.committed.is_exact,
        "timeline": at.timeline, "file": at.file, "position": at.position, "server_id": at.server_id, "thread": at.thread,
    })
}

fn note(note: &Note) -> Json {
    let mut all = place(&note.at);
    all["words"] = json!(note.words);
    all
}

fn change(change: &Change) -> Json {
    let mut all = place(&change.at);
    all["change"] = json!(change.verb());
    all["table"] = json!(change.table);
    all["statement"] = json!(change.statement.as_deref());
    all["before"] = image(&change.columns, change.before.as_ref());
    all["after"] = image(&change.columns, change.after.as_ref());
    all
}

/// By the names of the columns; a value that the log does not have is left out.
fn image(columns: &[NamedColumn], image: Option<&Image>) -> Json {
    let Some(image) = image else { return Json::Null };
    let known = columns
        .iter()
        .zip(image)
        .filter_map(|(column, cell)| Some((column.name.clone(), cell.as_ref()?.json.clone())));
    Json::Object(known.collect())
}
