//! The page a person sees in the browser when a login ends. It loads nothing and runs nothing.

use http::StatusCode;

use crate::error::AuthError;

/// What the page says.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    /// Logged in to the server of this title.
    Done(String),
    Failed(String),
    /// Not the path of the redirect URI.
    NotFound,
    /// Not the redirect that is waited for.
    Stranger,
    /// Only GET is answered.
    Method,
}

impl Page {
    /// The page of a login that ended.
    pub fn of(outcome: &Result<(), AuthError>, title: &str) -> Page {
        match outcome {
            Ok(()) => Page::Done(title.to_owned()),
            // RFC 9207 §2.4: nothing of such an answer is shown.
            Err(AuthError::IssMismatch { .. }) => Page::Failed(
                "The answer did not come from the authorization server that was asked.".to_owned(),
            ),
            Err(error) => Page::Failed(error.to_string()),
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Page::Done(_) => StatusCode::OK,
            Page::Failed(_) | Page::Stranger => StatusCode::BAD_REQUEST,
            Page::NotFound => StatusCode::NOT_FOUND,
            Page::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    pub fn html(&self) -> String {
        let (mark, class, heading, text) = match self {
            Page::Done(title) => (
                "✓",
                "good",
                "You are logged in",
                format!(
                    "Pillion can now use <b>{}</b>. You can close this tab and go back to where you came from.",
                    escaped(title)
                ),
            ),
            Page::Failed(reason) => (
                "✕",
                "bad",
                "The login did not work",
                format!("{}<br>You can close this tab and start the login again.", escaped(reason)),
            ),
            Page::NotFound => ("?", "bad", "Nothing is here", "Pillion waits for a login at another address.".to_owned()),
            Page::Stranger => (
                "✕",
                "bad",
                "This is not the login Pillion waits for",
                "It may belong to an earlier try. Go back to where you came from and open the newest address.".to_owned(),
            ),
            Page::Method => ("?", "bad", "This request is not answered", String::new()),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{heading}</title><style>{STYLE}</style></head>\
             <body><main class=\"{class}\"><div class=\"mark\">{mark}</div><h1>{heading}</h1><p>{text}</p></main></body></html>\n"
        )
    }
}

const STYLE: &str = ":root{color-scheme:light dark}\
body{margin:0;min-height:100vh;display:grid;place-items:center;font:16px/1.5 system-ui,sans-serif;background:light-dark(#f4f4f6,#17181c);color:light-dark(#222,#e8e8ea)}\
main{max-width:26rem;margin:1rem;padding:2rem 2.5rem;text-align:center;border-radius:14px;background:light-dark(#fff,#22242a);box-shadow:0 1px 12px rgba(0,0,0,.12)}\
h1{font-size:1.3rem;margin:.8rem 0 .4rem}p{margin:0;overflow-wrap:anywhere}\
.mark{width:3rem;height:3rem;line-height:3rem;margin:0 auto;border-radius:50%;font-size:1.5rem;color:#fff}\
.good .mark{background:#2e9e5b}.bad .mark{background:#c0483e}";

/// Text as it may stand in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_stranger_becomes_markup() {
        let page = Page::of(
            &Err(AuthError::Denied {
                error: "<script>alert(1)</script>".to_owned(),
                description: "\"'&".to_owned(),
            }),
            "docs",
        );
        let html = page.html();
        assert!(
            html.contains("&lt;script&gt;") && !html.contains("<script"),
            "{html}"
        );
        let page = Page::of(
            &Err(AuthError::IssMismatch {
                wanted: "https://as".to_owned(),
                found: "evil.example".to_owned(),
            }),
            "docs",
        );
        assert!(!page.html().contains("evil.example"));
    }
}
