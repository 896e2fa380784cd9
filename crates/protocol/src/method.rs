//! The method table: one row per method, from which the enum, the registry and the schema are made.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use crate::ErrorKind;
use crate::word::words;

words! {
    /// Who sends a request, and who may send it.
    pub enum Tier {
        /// A peer with the read-only token.
        ReadOnly = "read_only",
        /// A peer with the full token.
        Full = "full",
        /// The host on stdio, or the command line.
        Local = "local",
    }
}

/// A method as types: what it takes and what it answers.
pub trait MethodSpec {
    /// What it takes.
    type Params: DeserializeOwned + Serialize + JsonSchema + Send + 'static;
    /// What it answers.
    type Result: DeserializeOwned + Serialize + JsonSchema + Send + 'static;
    /// Which method it is.
    const METHOD: Method;
}

/// Hands the rows of the method table to a macro.
///
/// A row is `{ "name", Variant, handler_name, ParamsType, ResultType, tier, gate, presence, [errors], "doc" }`:
/// - tier: the lowest that may send it (`ReadOnly`, `Full`, `Local`);
/// - gate: `gated` where a full peer's request becomes a pending request, else `direct`;
/// - presence: `available`, or `absent` while this build does not have it;
/// - errors: kinds beyond those that any method can answer.
#[macro_export]
macro_rules! for_each_method {
    ($callback:ident) => {
        $callback! {
            { "mcp.status", Status, status, McpStatus, Status, ReadOnly, direct, available, [], "What shows in a directory: servers, trust, files. Starts nothing." }
            { "mcp.start", Start, start, McpStart, McpStartResult, Full, direct, available, [], "Starts a server and answers when it has settled." }
            { "mcp.stop", Stop, stop, McpStop, McpStopResult, Local, direct, available, [], "Stops a server; its running calls end with `call_cancelled`." }
            { "mcp.restart", Restart, restart, McpRestart, McpRestartResult, Local, direct, available, [], "Stops a server and starts it again." }
            { "mcp.logs", Logs, logs, McpLogs, McpLogsResult, Local, direct, available, [], "The last lines of a server's log; `follow` turns `mcp.log` on or off." }
            { "mcp.debug", Debug, debug, McpDebug, DebugReport, Full, direct, available, [], "What a server and its authorization server say about logging in." }
            { "mcp.doctor", Doctor, doctor, McpDoctor, McpDoctorResult, Local, direct, available, [], "Looks for what could keep servers from working." }
            { "mcp.prefetch", Prefetch, prefetch, McpPrefetch, McpPrefetchResult, Local, direct, available, [LockMismatch], "Fetches the packages of servers, so that a start needs no download; starts none." }
            { "mcp.lock", Lock, lock, McpLock, McpLockResult, Local, direct, available, [LockMismatch, WriteFailed], "Compares with, or writes, which version of each package may start, and with which tools." }
            { "mcp.add", Add, add, McpAdd, Written, Full, gated, available, [NameTaken, ConfigBroken, TooManyPending, WriteFailed], "Writes a new entry." }
            { "mcp.edit", Edit, edit, McpEdit, Written, Full, gated, available, [NameTaken, ConfigBroken, TooManyPending, WriteFailed, ReadOnly, StaleRevision], "Changes members of an entry." }
            { "mcp.remove", Remove, remove, McpRemove, McpRemoveResult, Full, gated, available, [ConfigBroken, TooManyPending, WriteFailed, ReadOnly], "Removes an entry; a lower layer's entry of the same name may then show." }
            { "mcp.enable", Enable, enable, McpEnable, Written, Full, gated, available, [ConfigBroken, TooManyPending, WriteFailed], "Switches an entry on or off; outside the user layer the switch is personal." }
            { "mcp.config", Config, config, McpConfig, McpConfigResult, ReadOnly, direct, available, [], "The entries as they stand in their files, secrets masked." }
            { "mcp.profile", Profile, profile, McpProfile, McpProfileResult, Local, direct, available, [NotFound], "The profiles, which are sets of servers; chooses one for the session." }
            { "mcp.reload", Reload, reload, McpReload, McpReloadResult, Local, direct, available, [], "Reads the files again and says what changed." }
            { "mcp.test", Test, test, McpTest, TestResult, Local, direct, available, [], "Tries an entry without writing it; a failed test is a result." }
            { "mcp.parse", Parse, parse, McpParse, McpParseResult, Local, direct, available, [], "Turns a pasted text into drafts of entries. No IO." }
            { "mcp.import", Import, import, McpImport, Imported, Local, direct, available, [ConfigBroken, WriteFailed, NotFound], "Writes the entries of another program's configuration." }
            { "mcp.import.detect", ImportDetect, import_detect, McpImportDetect, McpImportDetectResult, Local, direct, available, [], "Finds configurations of other programs." }
            { "mcp.export", Export, export, McpExport, McpExportResult, Local, direct, available, [], "Entries as a text for other programs." }
            { "mcp.sync", Sync, sync, McpSync, Synced, Local, direct, available, [ConfigBroken, WriteFailed, NotFound], "Writes entries into another program's own file, or takes over what stands there only." }
            { "mcp.pending", Pending, pending, McpPending, McpPendingResult, Local, direct, available, [], "The requests that wait for a decision." }
            { "mcp.decide", Decide, decide, McpDecide, McpDecideResult, Local, direct, available, [StaleReview], "Approves or rejects a request that was shown." }
            { "mcp.trust", Trust, trust, McpTrust, McpTrustResult, Local, direct, available, [StaleReview], "Shows, grants or revokes trust in a directory's own entries." }
            { "mcp.grants", Grants, grants, McpGrants, McpGrantsResult, Local, direct, available, [], "Remembered approvals of tools; takes some back." }
            { "mcp.gallery", Gallery, gallery, McpGallery, McpGalleryResult, Full, direct, available, [], "The bundled list of servers. No IO." }
            { "mcp.search", Search, search, McpSearch, McpSearchResult, Local, direct, available, [StaleCursor], "Searches the official registry or GitHub; a rate limit is a notice." }
            { "mcp.auth", Auth, auth, McpAuth, AuthAck, Full, direct, available, [RegistrationNeeded, RedirectBusy, AuthFailed, StateMismatch], "Begins, cancels, completes or forgets a login." }
            { "mcp.auth.list", AuthList, auth_list, McpAuthList, McpAuthListResult, Local, direct, available, [], "The logins that are stored; no token is shown." }
            { "mcp.catalog", Catalog, catalog, McpCatalog, McpCatalogResult, Full, direct, available, [StaleCursor], "Everything that servers offer; may start them." }
            { "mcp.tools.list", ToolsList, tools_list, McpToolsList, McpToolsListResult, Full, direct, available, [StaleCursor], "The tools that servers offer; may start them." }
            { "mcp.tools.search", ToolsSearch, tools_search, McpToolsSearch, McpToolsSearchResult, Local, direct, available, [], "Finds tools by words, also of servers that do not run." }
            { "mcp.tools.review", ToolsReview, tools_review, McpToolsReview, McpToolsReviewResult, Local, direct, available, [], "Definitions of tools that differ from what was accepted; starts nothing." }
            { "mcp.tool.call", ToolCall, tool_call, McpToolCall, McpToolCallResult, Local, direct, available, [InUse, Denied, NotFound, StartFailed, CommandNotFound, LockMismatch, Exited, ConnectFailed, UnsupportedProtocol, ProtocolError, TimedOut, TooLarge, CallCancelled, McpError, NeedsAuth, AuthFailed, UnsetVariable], "A person's call of a tool: no approval, but `tools.allow` and `tools.deny` hold." }
            { "mcp.call.cancel", CallCancel, call_cancel, McpCallCancel, McpCallCancelResult, Local, direct, available, [], "Ends a call by the host's own name for it." }
            { "mcp.resources.list", ResourcesList, resources_list, McpResourcesList, McpResourcesListResult, Full, direct, available, [StaleCursor], "The resources and templates that servers offer; may start them." }
            { "mcp.resource.read", ResourceRead, resource_read, McpResourceRead, McpResourceReadResult, Full, direct, available, [InUse, NotFound, StartFailed, CommandNotFound, LockMismatch, Exited, ConnectFailed, UnsupportedProtocol, ProtocolError, TimedOut, TooLarge, CallCancelled, McpError, NeedsAuth, AuthFailed, UnsetVariable], "Reads a resource." }
            { "mcp.resource.subscribe", ResourceSubscribe, resource_subscribe, McpResourceSubscribe, McpResourceSubscribeResult, Local, direct, available, [NotFound, StartFailed, CommandNotFound, LockMismatch, Exited, ConnectFailed, UnsupportedProtocol, ProtocolError, TimedOut, McpError, NeedsAuth, AuthFailed, UnsetVariable], "Asks for `mcp.resource.updated` until the connection ends; twice is once." }
            { "mcp.resource.unsubscribe", ResourceUnsubscribe, resource_unsubscribe, McpResourceUnsubscribe, McpResourceUnsubscribeResult, Local, direct, available, [ProtocolError, TimedOut, McpError], "Ends a subscription." }
            { "mcp.prompts.list", PromptsList, prompts_list, McpPromptsList, McpPromptsListResult, Full, direct, available, [StaleCursor], "The prompts that servers offer; may start them." }
            { "mcp.prompt.get", PromptGet, prompt_get, McpPromptGet, McpPromptGetResult, Full, direct, available, [InUse, ArgumentMissing, NotFound, StartFailed, CommandNotFound, LockMismatch, Exited, ConnectFailed, UnsupportedProtocol, ProtocolError, TimedOut, TooLarge, CallCancelled, McpError, NeedsAuth, AuthFailed, UnsetVariable], "Gets a prompt with its arguments filled in." }
            { "mcp.complete", Complete, complete, McpComplete, McpCompleteResult, Full, direct, available, [NotFound, StartFailed, CommandNotFound, LockMismatch, Exited, ConnectFailed, UnsupportedProtocol, ProtocolError, TimedOut, McpError, NeedsAuth, AuthFailed, UnsetVariable], "What could stand in an argument of a prompt or a variable of a template." }
            { "mcp.mentions.list", MentionsList, mentions_list, McpMentionsList, McpMentionsListResult, ReadOnly, direct, available, [], "Resources and prompts to mention in a text; without discovery for read-only peers." }
            { "mcp.prompt.expand", PromptExpand, prompt_expand, McpPromptExpand, McpPromptExpandResult, ReadOnly, direct, available, [InUse, MentionUnresolved, ArgumentMissing, TooLarge], "Replaces mentions in a text by what they name; without discovery for read-only peers." }
            { "mcp.model.tools", ModelTools, model_tools, McpModelTools, McpModelToolsResult, Local, direct, available, [], "The tools to offer to the model." }
            { "mcp.model.call", ModelCall, model_call, McpModelCall, ModelResult, Local, direct, available, [InUse], "A model's call of a tool; everything a model can use is a result." }
            { "mcp.questions", Questions, questions, McpQuestions, McpQuestionsResult, Local, direct, available, [], "The questions that are open." }
            { "mcp.answer", Answer, answer, Answer, Answered, Local, direct, available, [QuestionClosed], "Answers a question." }
            { "mcp.sample.answer", SampleAnswer, sample_answer, McpSampleAnswer, McpSampleAnswerResult, Local, direct, available, [QuestionClosed], "Answers `mcp.sample`." }
            { "mcp.session.end", SessionEnd, session_end, McpSessionEnd, McpSessionEndResult, Local, direct, available, [], "Ends a session: its grants, questions and spilled results." }
        }
    };
}

macro_rules! presence {
    (available) => {
        true
    };
    (absent) => {
        false
    };
}

macro_rules! gate {
    (gated) => {
        true
    };
    (direct) => {
        false
    };
}

macro_rules! define_methods {
    ($({ $name:literal, $variant:ident, $handler:ident, $params:ident, $result:ident, $tier:ident, $gate:ident, $presence:ident, [$($error:ident),*], $doc:literal })+) => {
        /// A method that a host or a peer can call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = $doc] $variant,)+
        }

        impl Method {
            /// Every method, in the order of the table.
            pub const ALL: &'static [Method] = &[$(Method::$variant),+];

            /// The method of that name.
            pub fn from_name(name: &str) -> Option<Method> {
                match name {
                    $($name => Some(Method::$variant),)+
                    _ => None,
                }
            }

            /// Its name on the wire.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Method::$variant => $name,)+
                }
            }

            /// The lowest tier that may send it.
            pub const fn tier(self) -> Tier {
                match self {
                    $(Method::$variant => Tier::$tier,)+
                }
            }

            /// Whether a full peer's request becomes a pending request.
            pub const fn gated(self) -> bool {
                match self {
                    $(Method::$variant => gate!($gate),)+
                }
            }

            /// Whether this build has it; if not, it answers `invalid_command`.
            pub const fn available(self) -> bool {
                match self {
                    $(Method::$variant => presence!($presence),)+
                }
            }

            /// The kinds of errors beyond those that any method can answer.
            pub fn errors(self) -> &'static [ErrorKind] {
                match self {
                    $(Method::$variant => &[$(ErrorKind::$error),*],)+
                }
            }

            /// What it does, in a line.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Method::$variant => $doc,)+
                }
            }

            /// The name of the type of its params.
            pub const fn params_type(self) -> &'static str {
                match self {
                    $(Method::$variant => stringify!($params),)+
                }
            }

            /// The name of the type of its result.
            pub const fn result_type(self) -> &'static str {
                match self {
                    $(Method::$variant => stringify!($result),)+
                }
            }

            /// Adds the schema of its params to a generator.
            pub(crate) fn add_params(self, generator: &mut schemars::SchemaGenerator) {
                match self {
                    $(Method::$variant => generator.subschema_for::<crate::$params>(),)+
                };
            }

            /// Adds the schema of its result to a generator.
            pub(crate) fn add_result(self, generator: &mut schemars::SchemaGenerator) {
                match self {
                    $(Method::$variant => generator.subschema_for::<crate::$result>(),)+
                };
            }
        }

        /// The methods as types, for code that is made from the table.
        pub mod methods {
            $(
                #[doc = $doc]
                #[derive(Debug, Clone, Copy)]
                pub struct $variant;

                impl crate::MethodSpec for $variant {
                    type Params = crate::$params;
                    type Result = crate::$result;
                    const METHOD: crate::Method = crate::Method::$variant;
                }
            )+
        }
    };
}
for_each_method!(define_methods);

impl Method {
    /// Whether a request of that tier may use it.
    pub fn allows(self, tier: Tier) -> bool {
        tier >= self.tier()
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
