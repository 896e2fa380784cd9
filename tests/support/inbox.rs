//! Everything that came out of the binary, and whether it was allowed to come.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::contract;
use super::frames::Message;

#[derive(Default)]
pub struct Inbox {
    /// Everything that came, in order.
    pub messages: Vec<Arc<Received>>,
    /// Requests of ours that are open or answered, by the text of their id.
    pub asked: HashMap<String, Asked>,
    pub faults: Vec<String>,
    pub ended: bool,
}

pub struct Asked {
    pub method: String,
    pub token: Option<Value>,
    pub answered: bool,
}

#[derive(Debug)]
pub struct Received {
    pub message: Message,
    pub text: String,
}

impl Received {
    pub fn params(&self) -> Value {
        self.message
            .params
            .as_ref()
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or(Value::Null)
    }
}

impl Inbox {
    /// Checks a message against what the protocol promises.
    pub fn admit(&mut self, message: &Message) -> Result<(), String> {
        if message.jsonrpc != "2.0" {
            return Err("not JSON-RPC 2.0".to_owned());
        }
        let Some(method) = &message.method else {
            return self.admit_response(message);
        };
        if message.result.is_some() || message.error.is_some() {
            return Err("a method and an outcome in one message".to_owned());
        }
        let params = message.params.as_ref().map(|raw| raw.get());
        match &message.id {
            Some(id) if id.as_i64().is_none_or(|id| id <= 1_000_000) => {
                Err("a request to the host needs an id from 1000001 up".to_owned())
            }
            Some(_) => contract::check_host_request(method, params),
            None => {
                if method == "$/progress" {
                    self.admit_progress(params)?;
                }
                contract::check_notification(method, params)
            }
        }
    }

    fn admit_progress(&self, params: Option<&str>) -> Result<(), String> {
        let params: Value = params
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let token = &params["token"];
        let open = self
            .asked
            .values()
            .any(|asked| asked.token.as_ref() == Some(token) && !asked.answered);
        if open {
            Ok(())
        } else {
            Err("progress for no open request".to_owned())
        }
    }

    fn admit_response(&mut self, message: &Message) -> Result<(), String> {
        if message.result.is_some() == message.error.is_some() {
            return Err("a response has either a result or an error".to_owned());
        }
        let id = message.id.as_ref().ok_or("a response without an id")?;
        if let Some(error) = &message.error {
            contract::check_error(error.get())?;
        }
        if id.is_null() {
            // The answer to something of which no id could be read.
            return if message.error.is_some() {
                Ok(())
            } else {
                Err("a result for nobody".to_owned())
            };
        }
        let Some(asked) = self.asked.get_mut(&id.to_string()) else {
            // Frames that a test wrote by hand are not on the list.
            return Ok(());
        };
        if asked.answered {
            return Err("a second answer to one request".to_owned());
        }
        asked.answered = true;
        match &message.result {
            Some(result) => contract::check_result(&asked.method, result.get()),
            None => Ok(()),
        }
    }
}
