//! What a person decides before something runs: trust in a project, requests of others, rules for tools.
//!
//! `pending` and `trust` say what an entry may do, as a [`Gate`]; `review` says what a person is shown, with its
//! `warnings` and what it `loosens`; `ledger` and `trust` keep it on the disk, with what was `agreed` to; `held` is what
//! belongs to it of a file. Nothing here starts anything.

pub(crate) mod agreed;
pub(crate) mod audit;
pub(crate) mod grants;
pub(crate) mod held;
pub(crate) mod ledger;
pub(crate) mod login;
pub(crate) mod loosens;
pub(crate) mod pending;
pub(crate) mod policy;
pub(crate) mod review;
pub(crate) mod trust;
pub(crate) mod warnings;

/// What stands between an entry and its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing.
    #[default]
    Open,
    /// Its project is not trusted as it stands.
    NeedsTrust,
    /// A request waits for a decision.
    Pending { expires_at: u64 },
    /// A request for it was rejected or lapsed.
    Refused,
    /// The administrator of this machine does not allow it.
    Forbidden { reason: String },
    /// The profile in use does not hold it. Nothing a person would have to agree to.
    Outside { profile: String, reason: String },
}

impl Gate {
    pub fn is_open(&self) -> bool {
        *self == Gate::Open
    }
}
