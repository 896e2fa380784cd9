//! The browser of the demo, and the person before it: opens the page of a login and says yes.

use std::time::Duration;

use hyper::header::LOCATION;
use url::Url;

use super::player::wrong;
use crate::cli::failure::Failure;

/// Every page is on this machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// The page of the login, the answer to it, and the page of Pillion.
const MAX_PAGES: usize = 5;

/// Opens the address, follows the first link of a page, and goes wherever it is sent; gives the headings of the pages.
pub async fn say_yes(address: &str) -> Result<Vec<String>, Failure> {
    let work = async {
        let client = mcp::client_builder(&mcp::ClientOptions::default())
            // Nothing but this machine is asked: no proxy and no certificates.
            .no_proxy()
            .tls_certs_only([])
            .build()?;
        let mut address = address.to_owned();
        let mut headings = Vec::new();
        for _ in 0..MAX_PAGES {
            let answer = client.get(&address).send().await?;
            let here = answer.url().clone();
            let location = answer.headers().get(LOCATION);
            let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let page = answer.text().await?;
            let next = location.or_else(|| between(&page, "<a href=\"", "\""));
            headings.extend(between(&page, "<h1>", "</h1>"));
            match next.and_then(|next| Url::join(&here, &next).ok()) {
                Some(next) => address = next.into(),
                None => break,
            }
        }
        Ok::<_, Box<dyn std::error::Error>>(headings)
    };
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(headings)) => Ok(headings),
        Ok(Err(error)) => Err(wrong("the pages of the login").cause(error.to_string())),
        Err(_) => Err(wrong("the pages of the login")),
    }
}

fn between(text: &str, begin: &str, end: &str) -> Option<String> {
    let (_, rest) = text.split_once(begin)?;
    let (found, _) = rest.split_once(end)?;
    Some(found.to_owned())
}
