//! The part of the play about a server that wants a login. The demo is the host, and the person at the browser.

use protocol::{Auth, AuthAction, ErrorKind, McpAuth, ServerEntry, State, methods};
use serde_json::json;

use super::browser;
use super::play::{Play, described};
use super::player::{expect, wrong};
use crate::cli::failure::Failure;

const SERVER: &str = "calendar";

impl Play {
    pub async fn log_in(&mut self) -> Result<(), Failure> {
        let methods = &["mcp.add", "mcp.start", "mcp.auth", "mcp.changed"];
        self.player
            .stage
            .step("Log in to a server that wants it", methods)?;
        let entry = ServerEntry {
            url: Some(self.calendar.as_str().into()),
            ..Default::default()
        };
        self.write(SERVER, entry).await?;
        let status = self.begin(SERVER).await?;
        let said = status.error.map(|error| error.message).unwrap_or_default();
        expect(status.state == State::NeedsAuth, "mcp.start")?;
        self.player
            .stage
            .item(SERVER, &format!("{} ({said})", status.state))?;

        let ack = self
            .player
            .ask(methods::Auth, params(AuthAction::Start, self))
            .await?;
        let url = ack.url.ok_or_else(|| wrong("mcp.auth"))?;
        let (address, _) = url.split_once('?').ok_or_else(|| wrong("mcp.auth"))?;
        self.player.stage.item(
            "address",
            &format!("{address}?… (the demo opens it, as the person would)"),
        )?;
        for heading in browser::say_yes(&url).await? {
            self.player.stage.item("page", &heading)?;
        }
        let status = self.until_ready(SERVER).await?;
        expect(status.auth == Some(Auth::Authorized), "mcp.auth")?;
        self.player
            .stage
            .item(SERVER, &format!("{}, authorized", described(&status)))?;
        self.today(1).await
    }

    pub async fn outlive_a_token(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Outlive a token that expires", &["mcp.tool.call"])?;
        let text = self.player.call(SERVER, "expire", json!({})).await?;
        self.player.stage.item("expire", &text)?;
        self.today(2).await?;
        self.player.stage.item(
            "refresh",
            "Pillion was refused, got a new token and asked again; the host saw one call",
        )
    }

    pub async fn log_out(&mut self) -> Result<(), Failure> {
        self.player
            .stage
            .step("Log out", &["mcp.auth", "mcp.tool.call"])?;
        let ack = self
            .player
            .ask(methods::Auth, params(AuthAction::Forget, self))
            .await?;
        let status = ack.server.ok_or_else(|| wrong("mcp.auth"))?;
        expect(status.auth_stored == Some(false), "mcp.auth")?;
        self.player.stage.item(
            SERVER,
            &format!("{}; its tokens are revoked and forgotten", status.state),
        )?;
        let error = self.refused(SERVER, "today").await?;
        expect(error.kind == ErrorKind::NeedsAuth, "the call after the logout")?;
        self.player
            .stage
            .item("today", &format!("{} (kind `{}`)", error.message, error.kind))
    }

    /// The tool says by which access token it was reached.
    async fn today(&mut self, number: u32) -> Result<(), Failure> {
        let text = self.player.call(SERVER, "today", json!({})).await?;
        let token = format!("access token {number})");
        expect(text.ends_with(&token), "the call with a token")?;
        self.player.stage.item("today", &text)
    }
}

fn params(action: AuthAction, play: &Play) -> McpAuth {
    McpAuth {
        directory: play.player.directory.clone(),
        server: SERVER.into(),
        action: Some(action),
        redirect: None,
    }
}
