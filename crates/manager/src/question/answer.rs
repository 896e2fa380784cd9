//! An answer, brought into the types that the server asked for, or what is wrong with it.

use std::collections::BTreeMap;

use protocol::{AnswerProblem, AnswerRule, AnswerValue, Choice, QuestionField, TextFormat};
use serde_json::{Map, Number, Value};

/// The content to send to the server: in the order of the form, defaults filled in, empty optional fields left out.
pub(crate) fn content(
    fields: &[QuestionField],
    given: &BTreeMap<String, AnswerValue>,
) -> Result<Map<String, Value>, Vec<AnswerProblem>> {
    let mut content = Map::new();
    let mut problems = Vec::new();
    for field in fields {
        let name = field.name();
        let outcome = match given.get(name) {
            Some(value) if is_cleared(field, value) => Ok(None),
            Some(value) => value_of(field, value).map(Some),
            None => Ok(default(field)),
        };
        match outcome {
            Ok(Some(value)) => {
                content.insert(name.to_owned(), value);
            }
            Ok(None) if field.required() => problems.push(problem(
                name,
                AnswerRule::Required,
                format!("`{}` is needed", label(field)),
            )),
            Ok(None) => {}
            Err((rule, message)) => problems.push(problem(name, rule, message)),
        }
    }
    for name in given
        .keys()
        .filter(|given| !fields.iter().any(|field| field.name() == given.as_str()))
    {
        problems.push(problem(
            name,
            AnswerRule::Unknown,
            format!("the form has no field `{name}`"),
        ));
    }
    if problems.is_empty() {
        Ok(content)
    } else {
        Err(problems)
    }
}

fn problem(field: &str, rule: AnswerRule, message: String) -> AnswerProblem {
    AnswerProblem {
        field: field.to_owned(),
        rule,
        message,
    }
}

fn label(field: &QuestionField) -> &str {
    match field {
        QuestionField::Text(field) => &field.label,
        QuestionField::Number(field) => &field.label,
        QuestionField::Integer(field) => &field.label,
        QuestionField::Boolean(field) => &field.label,
        QuestionField::Choice(field) => &field.label,
        QuestionField::Multi(field) => &field.label,
    }
}

/// An empty text in an optional field, or in one that no empty text can answer, was left empty.
fn is_cleared(field: &QuestionField, value: &AnswerValue) -> bool {
    let AnswerValue::Text(text) = value else {
        return false;
    };
    text.trim().is_empty() && (!field.required() || !matches!(field, QuestionField::Text(_)))
}

fn default(field: &QuestionField) -> Option<Value> {
    match field {
        QuestionField::Text(field) => field.default.clone().map(Value::String),
        QuestionField::Number(field) => field.default.clone().map(Value::Number),
        QuestionField::Integer(field) => field.default.clone().map(Value::Number),
        QuestionField::Boolean(field) => field.default.map(Value::Bool),
        QuestionField::Choice(field) => field.default.clone().map(Value::String),
        QuestionField::Multi(field) => field.default.clone().map(Value::from),
    }
}

type Misfit = (AnswerRule, String);

fn value_of(field: &QuestionField, value: &AnswerValue) -> Result<Value, Misfit> {
    let kind = |expected: &str| (AnswerRule::Type, format!("`{}` is not {expected}", shown(value)));
    match field {
        QuestionField::Text(field) => {
            let AnswerValue::Text(text) = value else {
                return Err(kind("a text"));
            };
            let length = text.chars().count() as u64;
            if field.min_length.is_some_and(|least| length < least) {
                return Err((
                    AnswerRule::Length,
                    format!(
                        "at least {} characters are needed",
                        field.min_length.unwrap_or_default()
                    ),
                ));
            }
            if field.max_length.is_some_and(|most| length > most) {
                return Err((
                    AnswerRule::Length,
                    format!(
                        "at most {} characters are allowed",
                        field.max_length.unwrap_or_default()
                    ),
                ));
            }
            if let Some(format) = &field.format {
                check_format(format, text)?;
            }
            Ok(Value::String(text.clone()))
        }
        QuestionField::Number(field) => {
            let number = typed_number(value).ok_or_else(|| kind("a number"))?;
            in_range(&number, field.minimum.as_ref(), field.maximum.as_ref())?;
            Ok(Value::Number(number))
        }
        QuestionField::Integer(field) => {
            let number = typed_number(value)
                .and_then(whole)
                .ok_or_else(|| kind("a whole number"))?;
            in_range(&number, field.minimum.as_ref(), field.maximum.as_ref())?;
            Ok(Value::Number(number))
        }
        QuestionField::Boolean(_) => match value {
            AnswerValue::Boolean(flag) => Ok(Value::Bool(*flag)),
            AnswerValue::Text(text) => match text.trim().to_lowercase().as_str() {
                "true" | "yes" | "y" => Ok(Value::Bool(true)),
                "false" | "no" | "n" => Ok(Value::Bool(false)),
                _ => Err(kind("yes or no")),
            },
            _ => Err(kind("yes or no")),
        },
        QuestionField::Choice(field) => {
            let AnswerValue::Text(text) = value else {
                return Err(kind("one of the options"));
            };
            option(&field.options, text).map(Value::String)
        }
        QuestionField::Multi(field) => {
            let chosen: Vec<String> = match value {
                AnswerValue::Texts(values) => values.clone(),
                AnswerValue::Text(text) => text
                    .split(',')
                    .map(|part| part.trim().to_owned())
                    .filter(|part| !part.is_empty())
                    .collect(),
                _ => return Err(kind("a list of options")),
            };
            let mut values = Vec::new();
            for text in &chosen {
                let value = option(&field.options, text)?;
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let count = values.len() as u64;
            if field.min_items.is_some_and(|least| count < least) {
                return Err((
                    AnswerRule::Items,
                    format!("at least {} are needed", field.min_items.unwrap_or_default()),
                ));
            }
            if field.max_items.is_some_and(|most| count > most) {
                return Err((
                    AnswerRule::Items,
                    format!("at most {} are allowed", field.max_items.unwrap_or_default()),
                ));
            }
            Ok(Value::from(values))
        }
    }
}

/// A number, also as a person types it.
fn typed_number(value: &AnswerValue) -> Option<Number> {
    match value {
        AnswerValue::Number(number) => Some(number.clone()),
        AnswerValue::Text(text) => match serde_json::from_str(text.trim().trim_start_matches('+')) {
            Ok(Value::Number(number)) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// `42` and `42.0` as 42; nothing else.
fn whole(number: Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number);
    }
    let float = number.as_f64()?;
    // Beyond 2^53 a float no longer says which whole number was meant.
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then(|| Number::from(float as i64))
}

fn in_range(number: &Number, minimum: Option<&Number>, maximum: Option<&Number>) -> Result<(), Misfit> {
    let value = number.as_f64().unwrap_or_default();
    if let Some(minimum) = minimum
        && minimum.as_f64().is_some_and(|minimum| value < minimum)
    {
        return Err((AnswerRule::Range, format!("at least {minimum} is needed")));
    }
    if let Some(maximum) = maximum
        && maximum.as_f64().is_some_and(|maximum| value > maximum)
    {
        return Err((AnswerRule::Range, format!("at most {maximum} is allowed")));
    }
    Ok(())
}

/// An option by its value, or as a person types it by its label.
fn option(options: &[Choice], text: &str) -> Result<String, Misfit> {
    let by_value = options.iter().find(|option| option.value == text);
    let by_label = || {
        options
            .iter()
            .find(|option| option.label.eq_ignore_ascii_case(text.trim()))
    };
    let found = by_value.or_else(by_label).or_else(|| {
        options
            .iter()
            .find(|option| option.value.eq_ignore_ascii_case(text.trim()))
    });
    found
        .map(|option| option.value.clone())
        .ok_or_else(|| (AnswerRule::Option, format!("`{text}` is not one of the options")))
}

fn check_format(format: &TextFormat, text: &str) -> Result<(), Misfit> {
    let (fits, expected) = match format {
        TextFormat::Email => {
            let (user, host) = text.rsplit_once('@').unwrap_or_default();
            (
                !user.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace),
                "an e-mail address",
            )
        }
        TextFormat::Uri => (url::Url::parse(text).is_ok(), "a URI"),
        TextFormat::Date => (is_date(text), "a date like 2026-07-28"),
        TextFormat::DateTime => (is_date_time(text), "a time like 2026-07-28T12:00:00Z"),
        TextFormat::Other(_) => (true, ""),
    };
    if fits {
        Ok(())
    } else {
        Err((AnswerRule::Format, format!("`{text}` is not {expected}")))
    }
}

/// RFC 3339 `full-date`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return false;
    }
    let (Ok(year), Ok(month), Ok(day)) = (digits(year), digits(month), digits(day)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339 `date-time`.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let (time, zone_fits) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, true),
        None => match time.rfind(['+', '-']) {
            Some(at) => {
                let zone = &time[at + 1..];
                let fits = zone
                    .split_once(':')
                    .is_some_and(|(hours, minutes)| below(hours, 24) && below(minutes, 60));
                (&time[..at], fits)
            }
            None => return false,
        },
    };
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return false;
    };
    is_date(date)
        && zone_fits
        && below(hours, 24)
        && below(minutes, 60)
        && below(seconds, 61)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn below(text: &str, bound: u32) -> bool {
    text.len() == 2 && digits(text).is_ok_and(|number| number < bound)
}

fn digits(text: &str) -> Result<u32, ()> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(drop)
    } else {
        Err(())
    }
}

fn shown(value: &AnswerValue) -> String {
    match value {
        AnswerValue::Text(text) => text.clone(),
        AnswerValue::Number(number) => number.to_string(),
        AnswerValue::Boolean(flag) => flag.to_string(),
        AnswerValue::Texts(values) => values.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::fields;
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(property: Value, answer: Value, expected: Result<Value, &str>) {
        let fields = fields(&json!({"properties": {"f": property}, "required": ["f"]})).unwrap();
        let given = match answer {
            Value::Null => BTreeMap::new(),
            value => BTreeMap::from([("f".to_owned(), serde_json::from_value(value).unwrap())]),
        };
        let found = content(&fields, &given)
            .map(|content| content["f"].clone())
            .map_err(|problems| problems[0].rule.as_str().to_owned());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn answers_as_people_type_them() {
        let integer = json!({"type": "integer", "minimum": 0});
        check(integer.clone(), json!("42"), Ok(json!(42)));
        check(integer.clone(), json!(42.0), Ok(json!(42)));
        check(integer.clone(), json!("42xyz"), Err("type"));
        check(integer.clone(), json!(42.5), Err("type"));
        check(integer.clone(), json!(-1), Err("range"));
        check(integer, Value::Null, Err("required"));
        check(json!({"type": "number"}), json!("1.50"), Ok(json!(1.5)));
        check(json!({"type": "boolean"}), json!("Yes"), Ok(json!(true)));
        check(
            json!({"type": "boolean", "default": false}),
            Value::Null,
            Ok(json!(false)),
        );
        check(
            json!({"type": "string", "minLength": 2}),
            json!("é"),
            Err("length"),
        );
        check(
            json!({"type": "string", "maxLength": 1}),
            json!("é"),
            Ok(json!("é")),
        );
        check(
            json!({"type": "string", "format": "date"}),
            json!("2026-02-29"),
            Err("format"),
        );
        check(
            json!({"type": "string", "format": "date"}),
            json!("2024-02-29"),
            Ok(json!("2024-02-29")),
        );
        check(
            json!({"type": "string", "format": "date-time"}),
            json!("2026-07-28T12:00:00+02:00"),
            Ok(json!("2026-07-28T12:00:00+02:00")),
        );
        check(
            json!({"type": "string", "format": "email"}),
            json!("a b@c"),
            Err("format"),
        );
        let choice = json!({"type": "string", "oneOf": [{"const": "lo", "title": "Low"}, {"const": "hi", "title": "High"}]});
        check(choice.clone(), json!("high"), Ok(json!("hi")));
        check(choice.clone(), json!("lo"), Ok(json!("lo")));
        check(choice, json!("mid"), Err("option"));
        let multi =
            json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}});
        check(multi.clone(), json!("a, c"), Ok(json!(["a", "c"])));
        check(multi.clone(), json!(["a", "b", "c"]), Err("items"));
        check(multi, json!(["a", "x"]), Err("option"));
    }

    #[test]
    fn a_field_that_was_not_asked_for_is_a_problem() {
        let given = BTreeMap::from([("x".to_owned(), AnswerValue::Boolean(true))]);
        assert_eq!(content(&[], &given).unwrap_err()[0].rule, AnswerRule::Unknown);
    }
}
