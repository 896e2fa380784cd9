//! The prompts of a question: one per field, then a look at the whole. They draw on stderr.

use inquire::error::{InquireError, InquireResult};
use inquire::{MultiSelect, Password, PasswordDisplayMode, Select, Text};
use protocol::{AnswerValue, Choice, FormQuestion, QuestionField, UrlQuestion};

use super::ask::{Content, Earlier, Reply};
use super::terminal::{Paint, harmless, one_line};

const NO_ANSWER: &str = "(no answer)";
const LEAVE_HELP: &str = "Esc to leave the question";

/// Asks a form; with `earlier`, only for the fields that did not fit, as they were typed.
pub fn form(form: &FormQuestion, earlier: Option<Earlier>, paint: Paint) -> InquireResult<Reply> {
    if form.fields.is_empty() {
        introduce(&form.title, &form.message, paint);
        let yes = Reply::Accept(Content::new());
        return choose("Your answer:", vec![("Yes", yes), ("No", Reply::Decline)]);
    }
    let (mut content, mut wrong) = match earlier {
        Some(earlier) => (earlier.content, Some(earlier.wrong)),
        None => {
            introduce(&form.title, &form.message, paint);
            (Content::new(), None)
        }
    };
    loop {
        let look = match fields(form, wrong.as_deref(), &mut content) {
            Ok(()) => vec![
                ("Send", Next::Send),
                ("Change", Next::Change),
                ("Decline", Next::Decline),
            ],
            Err(InquireError::OperationCanceled) => vec![("Go on", Next::Change), ("Decline", Next::Decline)],
            Err(error) => return Err(error),
        };
        // Esc here too: the person wants out without saying no.
        match choose("What now?", look)? {
            Next::Send => return Ok(Reply::Accept(content)),
            Next::Change => wrong = None,
            Next::Decline => return Ok(Reply::Decline),
        }
    }
}

enum Next {
    Send,
    Change,
    Decline,
}

/// Shows the whole address and its host before anything opens; opening it is left to the person.
pub fn url(url: &UrlQuestion, paint: Paint) -> InquireResult<Reply> {
    introduce(&url.title, &url.message, paint);
    for warning in &url.warnings {
        eprintln!("{} {}", paint.yellow("warning:"), harmless(warning));
    }
    eprintln!("Host:    {}", paint.bold(&one_line(&url.host)));
    eprintln!("Address: {}", one_line(&url.url));
    let yes = Reply::Accept(Content::new());
    choose(
        "Open this address in a browser yourself?",
        vec![("I will open it", yes), ("Decline", Reply::Decline)],
    )
}

fn introduce(title: &str, message: &str, paint: Paint) {
    eprintln!("\n{}", paint.bold(&one_line(title)));
    eprintln!("{}", harmless(message));
}

fn fields(form: &FormQuestion, only: Option<&[String]>, content: &mut Content) -> InquireResult<()> {
    for asked in &form.fields {
        let name = asked.name();
        if only.is_some_and(|only| !only.iter().any(|wanted| wanted == name)) {
            continue;
        }
        let before = content.remove(name);
        if let Some(value) = field(asked, before)? {
            content.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

pub fn label(field: &QuestionField) -> &str {
    match field {
        QuestionField::Text(field) => &field.label,
        QuestionField::Number(field) => &field.label,
        QuestionField::Integer(field) => &field.label,
        QuestionField::Boolean(field) => &field.label,
        QuestionField::Choice(field) => &field.label,
        QuestionField::Multi(field) => &field.label,
    }
}

/// `None`: left empty. What was answered before stands in for the server's default.
fn field(field: &QuestionField, before: Option<AnswerValue>) -> InquireResult<Option<AnswerValue>> {
    let before = before.or_else(|| default(field));
    match field {
        QuestionField::Text(field) if field.secret == Some(true) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let text = Password::new(&label.text)
                .with_display_mode(PasswordDisplayMode::Masked)
                .with_help_message(&label.help)
                .without_confirmation()
                .prompt()?;
            Ok((label.required || !text.is_empty()).then_some(AnswerValue::Text(text)))
        }
        QuestionField::Text(field) => typed(
            &Label::new(&field.label, field.description.as_deref(), field.required),
            before,
        ),
        QuestionField::Number(field) => typed(
            &Label::new(&field.label, field.description.as_deref(), field.required),
            before,
        ),
        QuestionField::Integer(field) => typed(
            &Label::new(&field.label, field.description.as_deref(), field.required),
            before,
        ),
        QuestionField::Boolean(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let start = match before {
                Some(AnswerValue::Boolean(yes)) => Some(usize::from(!yes)),
                _ => None,
            };
            let picked = pick(&label, vec!["Yes".to_owned(), "No".to_owned()], start)?;
            Ok(picked.map(|index| AnswerValue::Boolean(index == 0)))
        }
        QuestionField::Choice(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let is_before =
                |option: &Choice| matches!(&before, Some(AnswerValue::Text(value)) if *value == option.value);
            let start = field.options.iter().position(is_before);
            let picked = pick(&label, labels(&field.options), start)?;
            Ok(picked.map(|index| AnswerValue::Text(field.options[index].value.clone())))
        }
        QuestionField::Multi(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let chosen = match before {
                Some(AnswerValue::Texts(values)) => values,
                _ => Vec::new(),
            };
            let is_chosen = |index: &usize| chosen.contains(&field.options[*index].value);
            let start: Vec<usize> = (0..field.options.len()).filter(is_chosen).collect();
            let picked = MultiSelect::new(&label.text, labels(&field.options))
                .with_default(&start)
                .with_help_message(&label.help)
                .raw_prompt()?;
            let values: Vec<String> = picked
                .iter()
                .map(|option| field.options[option.index].value.clone())
                .collect();
            Ok((field.required || !values.is_empty()).then_some(AnswerValue::Texts(values)))
        }
    }
}

/// The value that the server offers.
pub fn default(field: &QuestionField) -> Option<AnswerValue> {
    match field {
        QuestionField::Text(field) => field.default.clone().map(AnswerValue::Text),
        QuestionField::Number(field) => field.default.clone().map(AnswerValue::Number),
        QuestionField::Integer(field) => field.default.clone().map(AnswerValue::Number),
        QuestionField::Boolean(field) => field.default.map(AnswerValue::Boolean),
        QuestionField::Choice(field) => field.default.clone().map(AnswerValue::Text),
        QuestionField::Multi(field) => field.default.clone().map(AnswerValue::Texts),
    }
}

/// What stands beside a prompt; a server wrote it.
struct Label {
    text: String,
    help: String,
    required: bool,
}

impl Label {
    fn new(label: &str, description: Option<&str>, required: bool) -> Label {
        let mark = if required { ":" } else { " (optional):" };
        let help = match description {
            Some(description) => format!("{}; {LEAVE_HELP}", one_line(description)),
            None => LEAVE_HELP.to_owned(),
        };
        Label {
            text: format!("{}{mark}", one_line(label)),
            help,
            required,
        }
    }
}

/// Typed text is sent as it is: the manager reads numbers out of it, or says what is wrong.
fn typed(label: &Label, before: Option<AnswerValue>) -> InquireResult<Option<AnswerValue>> {
    let start = match before {
        Some(AnswerValue::Text(text)) => harmless(&text).into_owned(),
        Some(AnswerValue::Number(number)) => number.to_string(),
        Some(AnswerValue::Boolean(_) | AnswerValue::Texts(_)) | None => String::new(),
    };
    let text = Text::new(&label.text)
        .with_initial_value(&start)
        .with_help_message(&label.help)
        .prompt()?;
    Ok((label.required || !text.is_empty()).then_some(AnswerValue::Text(text)))
}

fn pick(label: &Label, mut options: Vec<String>, default: Option<usize>) -> InquireResult<Option<usize>> {
    let count = options.len();
    if !label.required {
        options.push(NO_ANSWER.to_owned());
    }
    let start = default.unwrap_or(if label.required { 0 } else { count });
    let picked = Select::new(&label.text, options)
        .with_starting_cursor(start)
        .with_help_message(&label.help)
        .raw_prompt()?;
    Ok((picked.index < count).then_some(picked.index))
}

fn choose<T>(message: &str, options: Vec<(&str, T)>) -> InquireResult<T> {
    let labels: Vec<&str> = options.iter().map(|(label, _)| *label).collect();
    let picked = Select::new(message, labels)
        .without_filtering()
        .without_help_message()
        .raw_prompt()?;
    let mut options = options;
    Ok(options.swap_remove(picked.index).1)
}

fn labels(options: &[Choice]) -> Vec<String> {
    options.iter().map(|option| one_line(&option.label)).collect()
}
