//! What is done with a history: shown, cut, undone, restored, and given to the successor of a dead source.

pub mod cut;
pub mod detail;
pub mod history;
pub mod rescue;
pub mod restore;
pub mod undo;
