//! The demo's server behind a login: a made-up calendar that takes the tokens of its own authorization server only.
//!
//! What goes over the wire is reported on stdout, one line each, so that `--trace` can show it; secrets are masked.

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::issuer::{Issuer, Token};
use super::masked;
use super::modern::{self, Answer, Asked, Refusal, header, unknown_tool};

/// Serves on a free port until stdin ends; its address is the first line on stdout.
pub async fn serve() -> std::io::Result<()> {
    modern::serve(|origin| Calendar {
        issuer: Issuer::new(origin),
        metadata: format!("{origin}/.well-known/oauth-protected-resource/mcp"),
    })
    .await
}

struct Calendar {
    issuer: Issuer,
    /// Where this server says who gives out its tokens (RFC 9728 §3.1).
    metadata: String,
}

impl modern::Server for Calendar {
    fn name(&self) -> &'static str {
        "pillion-demo-calendar"
    }

    fn title(&self) -> &'static str {
        "Calendar"
    }

    fn instructions(&self) -> &'static str {
        "The calendar is made up."
    }

    fn tools(&self) -> Value {
        json!([
            {
                "name": "today", "title": "Today", "description": "What is on today, and for whom",
                "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true },
            },
            {
                "name": "expire", "title": "Expire", "description": "End the access token of this call at once",
                "inputSchema": { "type": "object" },
            },
        ])
    }

    fn call(&self, headers: &HeaderMap, params: &Value) -> Result<Value, Refusal> {
        let number = match self.issuer.knows(bearer(headers)) {
            Token::Good(number) => number,
            Token::Missing | Token::Over => 0,
        };
        let text = match params["name"].as_str().unwrap_or_default() {
            "today" => format!("Ada rides pillion at 10:00 (seen with access token {number})"),
            "expire" => {
                self.issuer.expire(bearer(headers));
                format!("Access token {number} is over")
            }
            other => return Err(unknown_tool(other)),
        };
        Ok(json!({ "content": [{ "type": "text", "text": text }] }))
    }

    fn aside(&self, asked: &Asked) -> Option<Answer> {
        let answer = match asked.path.as_str() {
            "/mcp" => self.refusal(&asked.headers),
            _ => self.issuer.answer(asked),
        };
        masked::report(asked, answer.as_ref());
        answer
    }
}

impl Calendar {
    /// What a request without a good token gets (RFC 6750 §3).
    fn refusal(&self, headers: &HeaderMap) -> Option<Answer> {
        let challenge = match self.issuer.knows(bearer(headers)) {
            Token::Good(_) => return None,
            Token::Missing => format!("Bearer resource_metadata=\"{}\"", self.metadata),
            Token::Over => format!(
                "Bearer error=\"invalid_token\", resource_metadata=\"{}\"",
                self.metadata
            ),
        };
        let refused = Answer::plain(StatusCode::UNAUTHORIZED, "a login is needed");
        Some(refused.header(WWW_AUTHENTICATE, challenge))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    header(headers, AUTHORIZATION.as_str())?.strip_prefix("Bearer ")
}
