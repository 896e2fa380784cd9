//! `headersHelper`: a program that prints headers, for tokens that nobody can write into a file.
//!
//! It is run at each start, and again when the server refuses a request with 401. In between its headers are kept in memory.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use protocol::{Error, ErrorKind};
use serde_json::{Map, Value};
use url::Url;

use super::launch::{Inherit, Origin};
use super::program;
use super::veil::Veil;
use crate::env::Env;
use crate::limits;

/// The helper of one server, and what it printed last.
pub(crate) struct Helper {
    words: Vec<String>,
    veil: Veil,
    server: String,
    url: String,
    base: PathBuf,
    inherit: Inherit,
    env: Env,
    printed: tokio::sync::Mutex<HeaderMap>,
}

impl Helper {
    /// Runs the helper for the first time.
    pub async fn start(
        words: Vec<String>,
        veil: &Veil,
        server: &str,
        url: &Url,
        origin: &Origin,
        env: &Env,
    ) -> Result<Arc<Helper>, Error> {
        let helper = Helper {
            words,
            veil: veil.clone(),
            server: server.to_owned(),
            url: url.to_string(),
            base: origin.base.clone(),
            inherit: origin.inherit(),
            env: env.clone(),
            printed: tokio::sync::Mutex::default(),
        };
        let printed = helper.run().await.map_err(|what| {
            Error::new(ErrorKind::StartFailed, what)
                .hint("run the program in a terminal; it must print a JSON object of texts, such as {\"Authorization\": \"Bearer …\"}")
        })?;
        *helper.printed.lock().await = printed;
        Ok(Arc::new(helper))
    }

    /// One run. What goes wrong is told without a word of what was printed.
    async fn run(&self) -> Result<HeaderMap, String> {
        let own = [
            ("PILLION_SERVER_NAME", self.server.as_str()),
            ("PILLION_SERVER_URL", self.url.as_str()),
        ];
        let output = program::run(
            &self.env,
            &self.words,
            &own,
            &self.base,
            self.inherit,
            limits::HELPER_WAIT,
        )
        .await;
        let headers = output.and_then(|output| read(&output));
        let program = self.words.first().map_or("", String::as_str);
        headers.map_err(|what| self.veil.text(&format!("`headersHelper` (`{program}`): {what}")))
    }

    /// The headers after a refusal of a request that carried `sent`; says whether they are other ones now.
    async fn again(&self, sent: Option<&HeaderValue>) -> Result<bool, String> {
        let mut printed = self.printed.lock().await;
        // Another request was refused before and had it run.
        if let Some(token) = printed.get(AUTHORIZATION)
            && Some(token) != sent
        {
            return Ok(true);
        }
        let fresh = self.run().await?;
        let is_other = *printed != fresh;
        *printed = fresh;
        Ok(is_other)
    }
}

fn read(output: &[u8]) -> Result<HeaderMap, String> {
    let members: Map<String, Value> =
        serde_json::from_slice(output).map_err(|_| "it printed no JSON object".to_owned())?;
    let mut headers = HeaderMap::new();
    for (name, value) in members {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| "it printed a name that no header may have".to_owned())?;
        let Some(text) = value.as_str() else {
            return Err(format!("the value of `{key}` is no text"));
        };
        let mut value = HeaderValue::from_str(text.trim())
            .map_err(|_| format!("the value of `{key}` holds characters that no header may have"))?;
        value.set_sensitive(true);
        if !mcp::is_reserved_header(&key) {
            headers.insert(key, value);
        }
    }
    Ok(headers)
}

/// The headers of a helper, with the tokens of a login on top.
struct Helped {
    helper: Arc<Helper>,
    tokens: Option<Arc<dyn mcp::TokenSource>>,
}

/// Puts a helper beneath the tokens of a login, where there is one.
pub(super) fn beneath(
    helper: Option<Arc<Helper>>,
    tokens: Option<Arc<dyn mcp::TokenSource>>,
) -> Option<Arc<dyn mcp::TokenSource>> {
    match helper {
        Some(helper) => Some(Arc::new(Helped { helper, tokens })),
        None => tokens,
    }
}

impl mcp::TokenSource for Helped {
    fn headers<'a>(&'a self, method: &'a Method, url: &'a Url) -> BoxFuture<'a, Result<HeaderMap, String>> {
        async move {
            let mut headers = self.helper.printed.lock().await.clone();
            if let Some(tokens) = &self.tokens {
                headers.extend(tokens.headers(method, url).await?);
            }
            Ok(headers)
        }
        .boxed()
    }

    fn refused<'a>(
        &'a self,
        refusal: mcp::Refusal<'a>,
        attempts: &'a mut mcp::Attempts,
    ) -> BoxFuture<'a, bool> {
        async move {
            if refusal.status == 401 && !attempts.helped {
                attempts.helped = true;
                match self.helper.again(refusal.sent).await {
                    Ok(true) => return true,
                    Ok(false) => {}
                    Err(what) => tracing::warn!("{what}"),
                }
            }
            match &self.tokens {
                Some(tokens) => tokens.refused(refusal, attempts).await,
                None => false,
            }
        }
        .boxed()
    }

    fn nonce(&self, url: &Url, nonce: &str) {
        if let Some(tokens) = &self.tokens {
            tokens.nonce(url, nonce);
        }
    }
}
