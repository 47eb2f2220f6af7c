//! A calculator for expressions with + - * / ^ and parentheses.

type Result<T> = std::result::Result<T, String>;

struct Parser<'a> {
    rest: &'a [u8],
}

/// The value of an expression.
pub fn calculate(text: &str) -> Result<f64> {
    let mut parser = Parser { rest: text.as_bytes() };
    parser.sum()
}

impl Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        while self.rest.first() == Some(&b' ') {
            self.rest = &self.rest[1..];
        }
        self.rest.first().copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.next() == Some(wanted);
        if is_there {
            self.rest = &self.rest[1..];
        }
        is_there
    }

    fn sum(&mut self) -> Result<f64> {
        let left = self.product()?;
        if self.take(b'+') {
            Ok(left + self.sum()?)
        } else if self.take(b'-') {
            Ok(left - self.sum()?)
        } else {
            Ok(left)
        }
    }

    fn product(&mut self) -> Result<f64> {
        let mut value = self.power()?;
        loop {
            if self.take(b'*') {
                value *= self.power()?;
            } else if self.take(b'/') {
                value /= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    /// Powers are reckoned from the right, and before a sign: -2^2 is -4.
    fn power(&mut self) -> Result<f64> {
        let mut value = self.signed()?;
        while self.take(b'^') {
            value = value.powf(self.signed()?);
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<f64> {
        if self.take(b'-') {
            return Ok(-self.signed()?);
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<f64> {
        if self.take(b'(') {
            let value = self.sum()?;
            self.take(b')');
            return Ok(value);
        }
        self.next();
        let length = self.rest.iter().take_while(|c| c.is_ascii_digit() || **c == b'.').count();
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = std::str::from_utf8(number).unwrap();
        number.parse().map_err(|_| format!("a number is missing before {:?}", String::from_utf8_lossy(rest)))
    }
}
