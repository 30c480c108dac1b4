//! Protobuf as it is on the wire: fields with numbers, of which only the length is known.

use crate::depth::TooDeep;

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag {0}")]
    IllegalTag(u64),
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u64),
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
    #[error("proto: wrong wireType = {got} for field {field}")]
    WrongWireType { got: u8, field: String },
    #[error("{0}")]
    TooDeep(TooDeep),
    #[error("field {field}: {why}")]
    Unspeakable { field: String, why: String },
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl Wire<'_> {
    /// The number that wire types have.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32(_) => 5,
        }
    }
}

/// The fields of a message, in the order in which they were sent. Groups, which nothing in Kubernetes has, are skipped.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let length = usize::try_from(length).map_err(|_| Error::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Overflow)
    }

    /// The next field; nothing at the end.
    fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Error> {
        let mut open_groups = 0_usize;
        while !self.rest.is_empty() {
            let tag = self.varint()?;
            let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0).ok_or(Error::IllegalTag(tag))?;
            let wire = match tag & 7 {
                0 => Wire::Varint(self.varint()?),
                1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
                2 => {
                    let length = self.varint()?;
                    Wire::Bytes(self.take(length)?)
                }
                3 => {
                    open_groups += 1;
                    continue;
                }
                4 => {
                    open_groups = open_groups.checked_sub(1).ok_or(Error::UnexpectedEndOfGroup)?;
                    continue;
                }
                5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
                other => return Err(Error::IllegalWireType(other)),
            };
            if open_groups == 0 {
                return Ok(Some((number, wire)));
            }
        }
        if open_groups == 0 { Ok(None) } else { Err(Error::Truncated) }
    }

    /// Whether everything was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.field().transpose();
        if matches!(next, Some(Err(_))) {
            self.rest = &[];
        }
        next
    }
}
