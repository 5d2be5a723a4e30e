//! What nodes tell one another, and what a node writes down, as text.

use crate::ballot::{Accepted, Ballot, Kind, Place};
use crate::memory::{Founding, Memory};
use crate::promotion::{Held, Promise};
use codec::ServerKind;
use codec::gtid::{GtidState, Uuid};
use serde::{Deserialize, Serialize};

/// Why a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Senseless(String);

fn senseless(error: impl ToString) -> Senseless {
    Senseless(error.to_string())
}

fn uuid(text: &str) -> Result<Uuid, Senseless> {
    text.parse().map_err(senseless)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BallotWords {
    epoch: u64,
    promotion: String,
}

impl From<&Ballot> for BallotWords {
    fn from(ballot: &Ballot) -> BallotWords {
        BallotWords { epoch: ballot.epoch, promotion: ballot.promoter.to_string() }
    }
}

impl BallotWords {
    fn meant(&self) -> Result<Ballot, Senseless> {
        Ok(Ballot { epoch: self.epoch, promoter: uuid(&self.promotion)? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GtidWords {
    /// `mysql` or `mariadb`.
    kind: String,
    gtids: String,
}

impl From<&GtidState> for GtidWords {
    fn from(state: &GtidState) -> GtidWords {
        GtidWords { kind: state.kind().name().to_owned(), gtids: state.to_record() }
    }
}

impl GtidWords {
    fn meant(&self) -> Result<GtidState, Senseless> {
        let kind: ServerKind = self.kind.parse().map_err(senseless)?;
        GtidState::parse(kind, &self.gtids).map_err(senseless)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceWords {
    file: String,
    /// A number of 64 bits, as text: TOML has none so large.
    identity: String,
    offset: u64,
}

impl From<&Place> for PlaceWords {
    fn from(place: &Place) -> PlaceWords {
        PlaceWords {
            file: place.file.clone(),
            identity: format!("{:016x}", place.identity),
            offset: place.offset,
        }
    }
}

impl PlaceWords {
    fn meant(&self) -> Result<Place, Senseless> {
        let identity = u64::from_str_radix(&self.identity, 16).map_err(senseless)?;
        Ok(Place { file: self.file.clone(), identity, offset: self.offset })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AcceptedWords {
    source: String,
    ballot: BallotWords,
    founded: BallotWords,
    members: Vec<String>,
    place: PlaceWords,
    history: GtidWords,
}

impl From<&Accepted> for AcceptedWords {
    fn from(accepted: &Accepted) -> AcceptedWords {
        AcceptedWords {
            source: accepted.source.clone(),
            ballot: (&accepted.ballot).into(),
            founded: (&accepted.founded).into(),
            members: accepted.members.iter().map(ToString::to_string).collect(),
            place: (&accepted.place).into(),
            history: (&accepted.history).into(),
        }
    }
}

impl AcceptedWords {
    fn meant(&self) -> Result<Accepted, Senseless> {
        Ok(Accepted {
            ballot: self.ballot.meant()?,
            founded: self.founded.meant()?,
            source: self.source.clone(),
            members: self.members.iter().map(|member| uuid(member)).collect::<Result<_, _>>()?,
            history: self.history.meant()?,
            place: self.place.meant()?,
        })
    }
}

/// What a node writes down.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    entered: u64,
    promised: Option<BallotWords>,
    founding_promised: Option<BallotWords>,
    #[serde(default)]
    founding_recorded: Vec<BallotWords>,
    accepted: Option<AcceptedWords>,
    kept: Option<GtidWords>,
}

/// A node's memory, and what it kept of the epoch that it entered, as text.
pub(crate) fn to_record(memory: &Memory, kept: Option<&GtidState>) -> Result<String, Senseless> {
    let founding = memory.founding();
    let record = Record {
        entered: memory.entered(),
        promised: memory.promised().map(Into::into),
        founding_promised: founding.promised.as_ref().map(Into::into),
        founding_recorded: founding.recorded.iter().map(Into::into).collect(),
        accepted: memory.accepted().map(Into::into),
        kept: kept.map(Into::into),
    };
    toml::to_string(&record).map_err(senseless)
}

/// The reverse of [`to_record`].
pub(crate) fn of_record(text: &str) -> Result<(Memory, Option<GtidState>), Senseless> {
    let record: Record = toml::from_str(text).map_err(senseless)?;
    let meant = |ballot: &Option<BallotWords>| ballot.as_ref().map(BallotWords::meant).transpose();
    let founding = Founding {
        promised: meant(&record.founding_promised)?,
        recorded: record.founding_recorded.iter().map(BallotWords::meant).collect::<Result<_, _>>()?,
    };
    let accepted = record.accepted.as_ref().map(AcceptedWords::meant).transpose()?;
    let memory =
        Memory::restored(meant(&record.promised)?, accepted, record.entered, founding).map_err(senseless)?;
    Ok((memory, record.kept.as_ref().map(GtidWords::meant).transpose()?))
}

/// How far a node is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// The epoch in which it counts.
    pub epoch: u64,
    /// Everything before it is on stable storage.
    pub place: Place,
    /// The source lacks what the node holds of this epoch, so that it counts for nobody.
    pub withholds: bool,
}

/// What a node tells the others, as often as it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Who tells it.
    pub node: Uuid,
    /// How many nodes there are by its configuration, itself counted.
    pub nodes: usize,
    /// The source that it has accepted. Left out where it was told before on the same connection.
    pub accepted: Option<Accepted>,
    /// It has accepted none.
    pub is_blank: bool,
    /// The highest epoch that it has promised; 0 for none.
    pub promised: u64,
    /// `None` while it does not count.
    pub confirmation: Option<Confirmation>,
}

#[derive(Serialize, Deserialize)]
struct ToldWords {
    node: String,
    nodes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<AcceptedWords>,
    is_blank: bool,
    promised: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirmation: Option<ConfirmationWords>,
}

#[derive(Serialize, Deserialize)]
struct ConfirmationWords {
    epoch: u64,
    place: PlaceWords,
    withholds: bool,
}

impl Told {
    /// As it is sent.
    pub fn to_text(&self) -> String {
        let words = ToldWords {
            node: self.node.to_string(),
            nodes: self.nodes,
            accepted: self.accepted.as_ref().map(Into::into),
            is_blank: self.is_blank,
            promised: self.promised,
            confirmation: self.confirmation.as_ref().map(|confirmation| ConfirmationWords {
                epoch: confirmation.epoch,
                place: (&confirmation.place).into(),
                withholds: confirmation.withholds,
            }),
        };
        as_json(&words)
    }

    /// The reverse.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_text(text: &[u8]) -> Result<Told, Senseless> {
        let words: ToldWords = serde_json::from_slice(text).map_err(senseless)?;
        let confirmation = words.confirmation.map(|words| {
            Ok(Confirmation { epoch: words.epoch, place: words.place.meant()?, withholds: words.withholds })
        });
        Ok(Told {
            node: uuid(&words.node)?,
            nodes: words.nodes,
            accepted: words.accepted.as_ref().map(AcceptedWords::meant).transpose()?,
            is_blank: words.is_blank,
            promised: words.promised,
            confirmation: confirmation.transpose()?,
        })
    }
}

/// What a promoter asks of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What it holds and has promised. Nothing changes by that, and the answer is no promise.
    Look,
    /// To promise a ballot.
    Promise(Ballot, Kind),
    /// To promise a ballot of a promotion that has seen the source of this epoch, unless a later one was accepted since.
    Succeed(Ballot, u64),
    /// To record the source of a founder.
    Record(Accepted),
    /// To accept the source of an epoch.
    Accept(Accepted),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RequestWords {
    Look {},
    Promise { ballot: BallotWords, kind: String },
    Succeed { ballot: BallotWords, seen: u64 },
    Record(AcceptedWords),
    Accept(AcceptedWords),
}

impl Request {
    /// As it is sent.
    pub fn to_text(&self) -> String {
        as_json(&match self {
            Request::Look => RequestWords::Look {},
            Request::Promise(ballot, kind) => RequestWords::Promise {
                ballot: ballot.into(),
                kind: match kind {
                    Kind::Founding => "founding".to_owned(),
                    Kind::Ordinary => "ordinary".to_owned(),
                    Kind::Joining(node) => node.to_string(),
                },
            },
            Request::Succeed(ballot, seen) => RequestWords::Succeed { ballot: ballot.into(), seen: *seen },
            Request::Record(accepted) => RequestWords::Record(accepted.into()),
            Request::Accept(accepted) => RequestWords::Accept(accepted.into()),
        })
    }

    /// The reverse.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_text(text: &[u8]) -> Result<Request, Senseless> {
        Ok(match serde_json::from_slice(text).map_err(senseless)? {
            RequestWords::Look {} => Request::Look,
            RequestWords::Promise { ballot, kind } => {
                let kind = match kind.as_str() {
                    "founding" => Kind::Founding,
                    "ordinary" => Kind::Ordinary,
                    node => Kind::Joining(uuid(node)?),
                };
                Request::Promise(ballot.meant()?, kind)
            }
            RequestWords::Succeed { ballot, seen } => Request::Succeed(ballot.meant()?, seen),
            RequestWords::Record(accepted) => Request::Record(accepted.meant()?),
            RequestWords::Accept(accepted) => Request::Accept(accepted.meant()?),
        })
    }
}

/// What a node answers to a promoter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Who answers.
    pub node: Uuid,
    /// The highest epoch that it has promised; 0 for none.
    pub promised: u64,
    /// What it holds of its epoch is more than the timeline that it writes goes on with: the source lost some of that, or is another one.
    pub keeps: bool,
    /// To a promise, and to a look: what it holds, from which server it receives, and where its copy of that ends.
    pub promise: Option<(Promise, Option<(String, Place)>)>,
}

#[derive(Serialize, Deserialize)]
struct ReplyWords {
    node: String,
    promised: u64,
    #[serde(default)]
    keeps: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promise: Option<PromiseWords>,
}

#[derive(Serialize, Deserialize)]
struct PromiseWords {
    entered: u64,
    held: GtidWords,
    accepted: Option<AcceptedWords>,
    source: Option<String>,
    end: Option<PlaceWords>,
}

impl Reply {
    /// As it is sent.
    pub fn to_text(&self) -> String {
        let promise = self.promise.as_ref().map(|(promise, end)| PromiseWords {
            entered: promise.held.entered,
            held: (&promise.held.gtids).into(),
            accepted: promise.accepted.as_ref().map(Into::into),
            source: end.as_ref().map(|(source, _)| source.clone()),
            end: end.as_ref().map(|(_, place)| place.into()),
        });
        as_json(&ReplyWords {
            node: self.node.to_string(),
            promised: self.promised,
            keeps: self.keeps,
            promise,
        })
    }

    /// The reverse.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_text(text: &[u8]) -> Result<Reply, Senseless> {
        let words: ReplyWords = serde_json::from_slice(text).map_err(senseless)?;
        let promise = words.promise.map(|words| {
            let held = Held { entered: words.entered, gtids: words.held.meant()? };
            let accepted = words.accepted.as_ref().map(AcceptedWords::meant).transpose()?;
            let end = words.end.as_ref().map(PlaceWords::meant).transpose()?;
            Ok((Promise { held, accepted }, words.source.zip(end)))
        });
        Ok(Reply {
            node: uuid(&words.node)?,
            promised: words.promised,
            keeps: words.keeps,
            promise: promise.transpose()?,
        })
    }
}

/// These types have no maps with keys that are no text, so nothing of them fails.
fn as_json(words: &impl Serialize) -> String {
    serde_json::to_string(words).unwrap_or_default()
}
