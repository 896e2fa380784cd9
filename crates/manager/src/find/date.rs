//! Times of RFC 3339 in UTC, as the registry and GitHub write them.

/// Milliseconds since the epoch; `None` where the text is no such time.
pub(super) fn epoch_ms(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_fitting = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_fitting {
        return None;
    }
    let rest = text.get(19..)?;
    let fraction: String = match rest.strip_prefix('.') {
        Some(rest) => rest.chars().take_while(char::is_ascii_digit).take(3).collect(),
        None => String::new(),
    };
    let zone = rest.trim_start_matches(|one: char| one == '.' || one.is_ascii_digit());
    let offset = match zone {
        "" | "Z" | "z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let hours: i64 = zone.get(1..3)?.parse().ok()?;
            let minutes: i64 = zone.get(4..6)?.parse().ok()?;
            sign * (hours * 60 + minutes)
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + (minute - offset) * 60 + second;
    let thousandths: i64 = format!("{fraction:0<3}").parse().ok()?;
    u64::try_from(seconds * 1000 + thousandths).ok()
}

/// The same the other way, to the second.
pub(super) fn rfc3339(epoch_ms: u64) -> String {
    let seconds = i64::try_from(epoch_ms / 1000).unwrap_or_default();
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Days since the epoch. A year of this count begins in March, so that a leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T12:30:15.25Z", Some(1_709_209_815_250)),
            ("2026-11-30T14:00:00.123456789Z", Some(1_796_047_200_123)),
            ("2026-11-30T15:00:00+01:00", Some(1_796_047_200_000)),
            ("2026-13-30T15:00:00Z", None),
            ("yesterday", None),
            ("2026-11-30T15:00:00+é", None),
            ("", None),
        ] {
            assert_eq!(epoch_ms(text), expected, "{text}");
        }
        for text in [
            "1970-01-01T00:00:00Z",
            "2024-02-29T12:30:15Z",
            "2026-12-31T23:59:59Z",
        ] {
            assert_eq!(rfc3339(epoch_ms(text).unwrap()), text);
        }
    }
}
