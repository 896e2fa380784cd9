//! The prompts of a question: one per field, then a look at the whole. They draw on stderr.

use inquire::error::{InquireError, InquireResult};
use inquire::{MultiSelect, Select, Text};
use protocol::{AnswerValue, Choice, FormQuestion, QuestionField, UrlQuestion};

use super::ask::{Content, Reply};
use super::terminal::{Paint, harmless, one_line};

const NO_ANSWER: &str = "(no answer)";
const LEAVE_HELP: &str = "Esc to leave the question";

/// Asks a form; with `earlier`, only for the fields that are not in it.
pub fn form(form: &FormQuestion, earlier: Option<Content>, paint: Paint) -> InquireResult<Reply> {
    if earlier.is_none() {
        introduce(&form.title, &form.message, paint);
    }
    if form.fields.is_empty() {
        let yes = Reply::Accept(Content::new());
        return choose("Your answer:", vec![("Yes", yes), ("No", Reply::Decline)]);
    }
    let mut content = earlier.unwrap_or_default();
    loop {
        let look = match fields(form, &mut content) {
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
            Next::Change => content.clear(),
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

fn fields(form: &FormQuestion, content: &mut Content) -> InquireResult<()> {
    for asked in &form.fields {
        let name = asked.name();
        if !content.contains_key(name)
            && let Some(value) = field(asked)?
        {
            content.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// `None`: left empty.
fn field(field: &QuestionField) -> InquireResult<Option<AnswerValue>> {
    match field {
        QuestionField::Text(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            typed(&label, field.default.clone().unwrap_or_default())
        }
        QuestionField::Number(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            typed(
                &label,
                field
                    .default
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            )
        }
        QuestionField::Integer(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            typed(
                &label,
                field
                    .default
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            )
        }
        QuestionField::Boolean(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let default = field.default.map(usize::from).map(|default| 1 - default);
            let picked = pick(&label, vec!["Yes".to_owned(), "No".to_owned()], default)?;
            Ok(picked.map(|index| AnswerValue::Boolean(index == 0)))
        }
        QuestionField::Choice(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let default = field
                .options
                .iter()
                .position(|option| Some(&option.value) == field.default.as_ref());
            let picked = pick(&label, labels(&field.options), default)?;
            Ok(picked.map(|index| AnswerValue::Text(field.options[index].value.clone())))
        }
        QuestionField::Multi(field) => {
            let label = Label::new(&field.label, field.description.as_deref(), field.required);
            let chosen = field.default.as_deref().unwrap_or_default();
            let is_default = |index: &usize| chosen.contains(&field.options[*index].value);
            let default: Vec<usize> = (0..field.options.len()).filter(is_default).collect();
            let picked = MultiSelect::new(&label.text, labels(&field.options))
                .with_default(&default)
                .with_help_message(&label.help)
                .raw_prompt()?;
            let values = picked
                .iter()
                .map(|option| field.options[option.index].value.clone())
                .collect::<Vec<_>>();
            Ok((field.required || !values.is_empty()).then_some(AnswerValue::Texts(values)))
        }
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

fn typed(label: &Label, default: String) -> InquireResult<Option<AnswerValue>> {
    let default = harmless(&default).into_owned();
    let text = Text::new(&label.text)
        .with_initial_value(&default)
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
