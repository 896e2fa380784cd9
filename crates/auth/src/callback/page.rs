//! The page a person sees in the browser when a login ends. It loads nothing and runs nothing.

use http::StatusCode;

use crate::error::AuthError;

/// What the page says.
#[derive(Clone, Debug)]
pub(crate) enum Page {
    /// Logged in to the server of this title.
    Done(String),
    /// The person, or the authorization server for them, said no to the server of this title.
    Denied(String, AuthError),
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
            Err(error @ AuthError::Denied { .. }) => Page::Denied(title.to_owned(), error.clone()),
            Err(error) => Page::Failed(error.to_string()),
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Page::Done(_) => StatusCode::OK,
            Page::Denied(..) | Page::Failed(_) | Page::Stranger => StatusCode::BAD_REQUEST,
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
                    "<p>Pillion can now use <b>{}</b>.</p><p>You can close this tab.</p>",
                    escaped(title)
                ),
            ),
            Page::Denied(title, error) => (
                "–",
                "quiet",
                "No access was given",
                format!(
                    "<p>Pillion was not allowed to use <b>{}</b>.</p>{}\
                     <p>You can close this tab. If that was not meant, start the login again.</p>",
                    escaped(title),
                    said(&error.to_string())
                ),
            ),
            Page::Failed(reason) => (
                "!",
                "bad",
                "The login did not work",
                format!(
                    "{}<p>You can close this tab and start the login again.</p>",
                    said(reason)
                ),
            ),
            Page::NotFound => (
                "?",
                "quiet",
                "Nothing is here",
                "<p>Pillion waits for a login at another address.</p>".to_owned(),
            ),
            Page::Stranger => (
                "!",
                "bad",
                "This is not the login Pillion waits for",
                "<p>It may belong to an earlier try, or it was finished already.</p>\
                 <p>Go back to where you started it, and open the newest address there.</p>"
                    .to_owned(),
            ),
            Page::Method => ("?", "quiet", "This request is not answered", String::new()),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{heading} – Pillion</title>\
             <style>{STYLE}</style></head><body class=\"{class}\"><main><div class=\"mark\" aria-hidden=\"true\">{mark}</div>\
             <h1>{heading}</h1>{text}</main><footer>Pillion</footer></body></html>\n"
        )
    }
}

const STYLE: &str = ":root{color-scheme:light dark}\
body{--page:#f4f4f6;--card:#fff;--text:#1f2024;--faint:#6b6d76;--mark:#6b6d76;margin:0;min-height:100vh;display:grid;grid-template-rows:1fr auto;place-items:center;font:16px/1.5 system-ui,sans-serif;background:var(--page);color:var(--text)}\
.good{--mark:#23824a}.bad{--mark:#b8402f}\
@media(prefers-color-scheme:dark){body{--page:#17181c;--card:#22242a;--text:#e8e8ea;--faint:#9a9ca6}}\
main{box-sizing:border-box;width:min(27rem,100% - 2rem);margin:1rem;padding:2.25rem 2rem;text-align:center;border-radius:14px;background:var(--card);box-shadow:0 1px 14px rgba(0,0,0,.1)}\
h1{font-size:1.3rem;line-height:1.3;margin:1rem 0 .75rem}p{margin:.4rem 0;overflow-wrap:anywhere}\
.said{margin:.8rem 0;padding:.6rem .8rem;border-radius:8px;background:var(--page);font-size:.9rem}\
.mark{width:3rem;height:3rem;margin:0 auto;border-radius:50%;font:600 1.5rem/3rem system-ui,sans-serif;color:#fff;background:var(--mark)}\
footer{padding:1rem;font-size:.85rem;color:var(--faint)}";

/// A reason in its own box, as a sentence: parts of it may come from a stranger.
fn said(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    format!(
        "<p class=\"said\">{}</p>",
        escaped(&format!("{first}{}", letters.as_str()))
    )
}

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
        let (error, description) = ("<script>alert(1)</script>".to_owned(), "\"'&".to_owned());
        let denied = AuthError::Denied {
            error: error.clone(),
            description: description.clone(),
        };
        for failure in [denied, AuthError::AuthorizationRefused { error, description }] {
            let html = Page::of(&Err(failure), "<script>").html();
            assert!(
                html.contains("&lt;script&gt;") && !html.contains("<script"),
                "{html}"
            );
        }
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
