//! How a text looks to a person: without what nobody sees, and in the Latin letters that others look like.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// The text without characters that are not shown and without accents; wide, bold and encircled letters are plain ones
/// (Unicode's compatibility decomposition).
pub(super) fn plain(text: &str) -> String {
    let shown: String = text.chars().filter(|one| !is_ignorable(*one)).collect();
    DecomposingNormalizerBorrowed::new_nfkd()
        .normalize(&shown)
        .chars()
        .filter(|one| !matches!(one, '\u{300}'..='\u{36f}') && !is_ignorable(*one))
        .collect()
}

/// The text as somebody reads it who takes all of its letters for Latin ones.
pub(super) fn as_latin(plain: &str) -> String {
    let letters: Vec<char> = plain.chars().map(twin).collect();
    let is_letter = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|one| one.is_alphabetic())
    };
    // A digit or sign inside of a word is read as the letter it stands for.
    let read = letters.iter().enumerate().map(|(at, one)| {
        let is_inside = is_letter(at.checked_sub(1)) && is_letter(Some(at + 1));
        if is_inside { stand_in(*one) } else { *one }
    });
    read.collect()
}

/// Characters that are not shown (Unicode's `Default_Ignorable_Code_Point`).
fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The Latin letter that a Cyrillic, Greek or other letter looks like.
fn twin(character: char) -> char {
    match character {
        'а' | 'α' | 'ɑ' => 'a',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'с' | 'ϲ' => 'c',
        'С' => 'C',
        'ԁ' | 'ɗ' | 'đ' => 'd',
        'е' | 'ҽ' | 'ε' => 'e',
        'Е' | 'Ε' => 'E',
        'ɡ' => 'g',
        'һ' => 'h',
        'Н' | 'Η' => 'H',
        'і' | 'ı' | 'ι' | 'ɩ' => 'i',
        'І' | 'Ι' | 'Ӏ' => 'I',
        'ј' => 'j',
        'Ј' => 'J',
        'к' | 'κ' => 'k',
        'К' | 'Κ' => 'K',
        'ӏ' | 'ł' => 'l',
        'м' => 'm',
        'М' | 'Μ' => 'M',
        'ո' | 'η' => 'n',
        'Ν' => 'N',
        'о' | 'ο' | 'օ' | 'ø' => 'o',
        'О' | 'Ο' => 'O',
        'р' | 'ρ' => 'p',
        'Р' | 'Ρ' => 'P',
        'ѕ' => 's',
        'Ѕ' => 'S',
        'т' | 'τ' => 't',
        'Т' | 'Τ' => 'T',
        'υ' | 'ս' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ω' => 'w',
        'Ԝ' => 'W',
        'х' | 'χ' => 'x',
        'Х' | 'Χ' => 'X',
        'у' | 'γ' => 'y',
        'У' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        other => other,
    }
}

fn stand_in(character: char) -> char {
    match character {
        '0' => 'o',
        '1' | '!' | '|' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        other => other,
    }
}
