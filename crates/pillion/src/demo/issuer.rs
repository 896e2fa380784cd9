//! A small authorization server: metadata, dynamic registration, a page to say yes or no, PKCE, rotation, revocation.
//!
//! OAuth 2.1 for public clients with a browser on this machine. Everything is in memory and ends with the process.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{CACHE_CONTROL, LOCATION};
use hyper::{Method, StatusCode};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::modern::{Answer, Asked};

/// What an access token is good for, in seconds.
const LIFETIME: u64 = 3600;
/// Registrations, questions and codes that are kept; this is a demo.
const MAX_KEPT: usize = 64;

pub struct Issuer {
    origin: String,
    /// The redirect URIs of each registered client.
    clients: RefCell<HashMap<String, Vec<String>>>,
    /// Questions that a person has not answered yet.
    questions: RefCell<HashMap<String, Request>>,
    /// Codes that were not exchanged yet; each is good for one exchange.
    codes: RefCell<HashMap<String, Request>>,
    logins: RefCell<Vec<Login>>,
    /// How many access tokens were given out.
    count: Cell<u64>,
}

/// What a client asked for (RFC 6749 §4.1.1, RFC 7636 §4.3).
struct Request {
    client: String,
    redirect_uri: String,
    challenge: String,
    state: String,
}

struct Login {
    client: String,
    access: Option<String>,
    refresh: String,
    number: u64,
}

/// What a token is worth.
pub enum Token {
    Missing,
    /// It was good once, or never.
    Over,
    /// Its number.
    Good(u64),
}

type Form = HashMap<String, String>;

impl Issuer {
    pub fn new(origin: &str) -> Issuer {
        Issuer {
            origin: origin.to_owned(),
            clients: RefCell::default(),
            questions: RefCell::default(),
            codes: RefCell::default(),
            logins: RefCell::default(),
            count: Cell::new(0),
        }
    }

    pub fn knows(&self, token: Option<&str>) -> Token {
        let Some(token) = token else {
            return Token::Missing;
        };
        let logins = self.logins.borrow();
        let login = logins.iter().find(|login| login.access.as_deref() == Some(token));
        login.map_or(Token::Over, |login| Token::Good(login.number))
    }

    /// Ends an access token; the login goes on.
    pub fn expire(&self, token: Option<&str>) {
        for login in self.logins.borrow_mut().iter_mut() {
            if login.access.as_deref() == token {
                login.access = None;
            }
        }
    }

    /// `None`: nothing of this server is at that path.
    pub fn answer(&self, asked: &Asked) -> Option<Answer> {
        let query = || {
            form_urlencoded::parse(asked.query.as_bytes())
                .into_owned()
                .collect()
        };
        let body = || form_urlencoded::parse(&asked.body).into_owned().collect();
        Some(match (&asked.method, asked.path.as_str()) {
            (&Method::GET, "/.well-known/oauth-protected-resource/mcp") => {
                Answer::json(StatusCode::OK, &self.resource())
            }
            (&Method::GET, "/.well-known/oauth-authorization-server") => {
                Answer::json(StatusCode::OK, &self.metadata())
            }
            (&Method::POST, "/register") => self.register(&asked.body),
            (&Method::GET, "/authorize") => self.authorize(query()),
            (&Method::GET, "/decide") => self.decide(&query()),
            (&Method::POST, "/token") => self.token(&body()),
            (&Method::POST, "/revoke") => self.revoke(&body()),
            _ => return None,
        })
    }

    /// RFC 9728 §2.
    fn resource(&self) -> Value {
        json!({ "resource": format!("{}/mcp", self.origin), "authorization_servers": [self.origin] })
    }

    /// RFC 8414 §2.
    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}/{path}", self.origin);
        json!({
            "issuer": self.origin,
            "authorization_endpoint": at("authorize"),
            "token_endpoint": at("token"),
            "registration_endpoint": at("register"),
            "revocation_endpoint": at("revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    /// RFC 7591 §3.
    fn register(&self, body: &[u8]) -> Answer {
        let wishes = serde_json::from_slice::<Value>(body).unwrap_or_default();
        let uris = wishes["redirect_uris"].as_array().into_iter().flatten();
        let uris: Vec<String> = uris.filter_map(Value::as_str).map(str::to_owned).collect();
        let is_here = |uri: &String| {
            Url::parse(uri).is_ok_and(|uri| uri.scheme() == "http" && uri.host_str() == Some("127.0.0.1"))
        };
        if uris.is_empty() || !uris.iter().all(is_here) {
            return refused("invalid_redirect_uri");
        }
        let id = random();
        let client = json!({ "client_id": id, "redirect_uris": uris, "token_endpoint_auth_method": "none" });
        keep(&self.clients, id, uris);
        Answer::json(StatusCode::CREATED, &client)
    }

    /// RFC 6749 §4.1.1. Who asks for something else than it registered is not sent anywhere.
    fn authorize(&self, mut form: Form) -> Answer {
        let mut take = |name: &str| form.remove(name).unwrap_or_default();
        let (kind, method) = (take("response_type"), take("code_challenge_method"));
        let request = Request {
            client: take("client_id"),
            redirect_uri: take("redirect_uri"),
            challenge: take("code_challenge"),
            state: take("state"),
        };
        let is_known = self
            .clients
            .borrow()
            .get(&request.client)
            .is_some_and(|uris| uris.contains(&request.redirect_uri));
        if !is_known || kind != "code" || method != "S256" || request.challenge.is_empty() {
            return Answer::plain(StatusCode::BAD_REQUEST, "this is not a login the calendar knows");
        }
        let question = random();
        keep(&self.questions, question.clone(), request);
        let link =
            |answer: &str| format!("<a href=\"/decide?question={question}&answer={answer}\">{answer}</a>");
        let page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Calendar</title>\
             <h1>May Pillion see your calendar?</h1><p>{} · {}</p></html>",
            link("Allow"),
            link("Deny")
        );
        Answer::new(StatusCode::OK, "text/html; charset=utf-8", page)
    }

    /// RFC 6749 §4.1.2, RFC 9207.
    fn decide(&self, form: &Form) -> Answer {
        let question = self.questions.borrow_mut().remove(field(form, "question"));
        let Some(request) = question else {
            return Answer::plain(StatusCode::BAD_REQUEST, "this was answered already");
        };
        let Ok(mut back) = Url::parse(&request.redirect_uri) else {
            return Answer::plain(StatusCode::BAD_REQUEST, "this cannot be answered");
        };
        let mut query = back.query_pairs_mut();
        query.append_pair("state", &request.state);
        query.append_pair("iss", &self.origin);
        if field(form, "answer") == "Allow" {
            let code = random();
            query.append_pair("code", &code);
            keep(&self.codes, code, request);
        } else {
            query.append_pair("error", "access_denied");
        }
        drop(query);
        Answer::plain(StatusCode::FOUND, "").header(LOCATION, back.into())
    }

    /// RFC 6749 §4.1.3 and §6.
    fn token(&self, form: &Form) -> Answer {
        let client = field(form, "client_id");
        match field(form, "grant_type") {
            "authorization_code" => {
                let request = self.codes.borrow_mut().remove(field(form, "code"));
                let is_right = request.is_some_and(|request| {
                    request.client == client
                        && request.redirect_uri == field(form, "redirect_uri")
                        && request.challenge == challenge(field(form, "code_verifier"))
                });
                if !is_right {
                    return refused("invalid_grant");
                }
                self.grant(client)
            }
            "refresh_token" => {
                let token = field(form, "refresh_token");
                let mut logins = self.logins.borrow_mut();
                let place = logins
                    .iter()
                    .position(|login| login.client == client && login.refresh == token);
                let Some(place) = place else {
                    return refused("invalid_grant");
                };
                // Rotation: what was used once is no good again (RFC 9700 §2.2.2).
                logins.remove(place);
                drop(logins);
                self.grant(client)
            }
            _ => refused("unsupported_grant_type"),
        }
    }

    fn grant(&self, client: &str) -> Answer {
        self.count.set(self.count.get() + 1);
        let (access, refresh) = (random(), random());
        let answer = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": LIFETIME, "refresh_token": refresh,
        });
        self.logins.borrow_mut().push(Login {
            client: client.to_owned(),
            access: Some(access),
            refresh,
            number: self.count.get(),
        });
        Answer::json(StatusCode::OK, &answer).header(CACHE_CONTROL, "no-store".to_owned())
    }

    /// RFC 7009 §2: whatever the token was, it is over.
    fn revoke(&self, form: &Form) -> Answer {
        let token = field(form, "token");
        self.logins
            .borrow_mut()
            .retain(|login| login.refresh != token && login.access.as_deref() != Some(token));
        Answer::plain(StatusCode::OK, "")
    }
}

fn field<'a>(form: &'a Form, name: &str) -> &'a str {
    form.get(name).map_or("", String::as_str)
}

/// RFC 6749 §5.2.
fn refused(error: &str) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, &json!({ "error": error }))
}

fn keep<T>(kept: &RefCell<HashMap<String, T>>, key: String, value: T) {
    let mut kept = kept.borrow_mut();
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
    kept.insert(key, value);
}

/// S256 (RFC 7636 §4.2).
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes()))
}

fn random() -> String {
    let mut bytes = [0; 24];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}
