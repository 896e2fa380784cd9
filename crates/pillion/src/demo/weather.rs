//! The demo's HTTP server: a made-up forecast, in the revision of 2026-07-28.
//!
//! A question is the result `input_required`, answered by asking again with the state that was handed out.
//! As strict as a real server: a state that was tampered with gets `-32602`.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::modern::{self, Refusal, header, mismatch, refuse, unknown_tool};

/// Serves on a free port until stdin ends; its address is the one line on stdout.
pub async fn serve() -> std::io::Result<()> {
    modern::serve(|_| Weather {
        key: RandomState::new(),
    })
    .await
}

struct Weather {
    /// Seals the state of a question, so that nobody can change what was asked.
    key: RandomState,
}

impl modern::Server for Weather {
    fn name(&self) -> &'static str {
        "pillion-demo-weather"
    }

    fn title(&self) -> &'static str {
        "Weather"
    }

    fn instructions(&self) -> &'static str {
        "The forecast is made up."
    }

    fn tools(&self) -> Value {
        tools()
    }

    fn call(&self, headers: &HeaderMap, params: &Value) -> Result<Value, Refusal> {
        let city = params["arguments"]["city"].as_str();
        if header(headers, "mcp-param-city").map(decoded).as_deref() != city {
            return Err(mismatch("Mcp-Param-City is not the argument `city`"));
        }
        let city = city.unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "forecast" => Ok(forecast(city)),
            "plan_trip" => self.plan_trip(city, params),
            other => Err(unknown_tool(other)),
        }
    }
}

impl Weather {
    /// Two rounds: the first hands out a question and a sealed state, the second brings both back.
    fn plan_trip(&self, city: &str, params: &Value) -> Result<Value, Refusal> {
        let Some(state) = params["requestState"].as_str() else {
            return Ok(json!({
                "resultType": "input_required",
                "inputRequests": { "day": { "method": "elicitation/create", "params": {
                    "mode": "form",
                    "message": format!("When do you want to go to {city}?"),
                    "requestedSchema": trip_form(),
                } } },
                "requestState": self.seal(city),
            }));
        };
        if state != self.seal(city) {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                -32602,
                "requestState is not the one handed out",
            ));
        }
        let reply = &params["inputResponses"]["day"];
        let plan = match (reply["action"].as_str(), reply["content"]["day"].as_str()) {
            (Some("accept"), Some(day)) => format!("{city} on {day}: sunny, 21 °C. Take a hat"),
            _ => format!("No trip to {city} then"),
        };
        Ok(json!({ "content": [{ "type": "text", "text": plan }] }))
    }

    fn seal(&self, city: &str) -> String {
        format!("trip-{:016x}", self.key.hash_one(city))
    }
}

/// What does not fit a header comes as `=?base64?…?=` (2026-07-28, Streamable HTTP).
fn decoded(value: &str) -> Cow<'_, str> {
    let bytes = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
        .and_then(|encoded| STANDARD.decode(encoded).ok());
    match bytes.map(String::from_utf8) {
        Some(Ok(text)) => text.into(),
        _ => value.into(),
    }
}

fn tools() -> Value {
    let city = json!({
        "type": "string", "description": "Name of the city", "minLength": 1, "x-mcp-header": "City",
    });
    json!([
        {
            "name": "forecast", "title": "Forecast", "description": "Tomorrow's weather in a city",
            "inputSchema": { "type": "object", "properties": { "city": city }, "required": ["city"] },
            "outputSchema": { "type": "object", "properties": {
                "city": { "type": "string" }, "celsius": { "type": "number" }, "sky": { "type": "string" },
            }, "required": ["city", "celsius", "sky"] },
            "annotations": { "readOnlyHint": true },
        },
        {
            "name": "plan_trip", "title": "Plan a trip", "description": "Plan a trip to a city; asks when",
            "inputSchema": { "type": "object", "properties": { "city": city }, "required": ["city"] },
        },
    ])
}

fn trip_form() -> Value {
    json!({
        "type": "object",
        "properties": { "day": {
            "type": "string", "title": "Day", "enum": ["Friday", "Saturday", "Sunday"], "default": "Saturday",
        } },
        "required": ["day"],
    })
}

fn forecast(city: &str) -> Value {
    json!({
        "content": [{ "type": "text", "text": format!("Tomorrow in {city}: sunny, 21.5 °C") }],
        "structuredContent": { "city": city, "celsius": 21.5, "sky": "sunny" },
    })
}
