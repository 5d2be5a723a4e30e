//! What an operator sets up, sees and is told.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod admin_forms;
mod admin_tls;
mod alerts;
mod doctor;
mod doctor_says;
mod messages;
mod notify;
mod page;
mod service_manager;
mod setup;
mod status_says;
mod surroundings;
mod top;
