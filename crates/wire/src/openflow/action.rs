//! Actions and instructions (sections 7.2.4 and 7.2.5).

use super::Fault;
use super::reader::Reader;
use super::writer::Writer;

/// What is done with a packet: what every switch has to do, and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `OFPAT_OUTPUT`; `max_len` is how much of it a controller gets.
    Output { port: u32, max_len: u16 },
    /// `OFPAT_GROUP`
    Group(u32),
}

const OUTPUT: u16 = 0;
const GROUP: u16 = 22;
const EXPERIMENTER: u16 = 0xffff;

fn action(reader: &mut Reader<'_>) -> Result<Action, Fault> {
    let kind = reader.u16()?;
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(4).filter(|_| len % 8 == 0);
    let body_len = body_len.ok_or(Fault::ACTION_BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::ACTION_BAD_LEN)?;
    let action = match kind {
        OUTPUT => {
            let action = Action::Output {
                port: body.u32()?,
                max_len: body.u16()?,
            };
            body.take(6)?;
            action
        }
        GROUP => Action::Group(body.u32()?),
        EXPERIMENTER => return Err(Fault::ACTION_BAD_EXPERIMENTER),
        _ => return Err(Fault::ACTION_BAD_TYPE),
    };
    body.end()?;
    Ok(action)
}

/// Reads actions to the end.
pub(super) fn parse(mut reader: Reader<'_>) -> Result<Vec<Action>, Fault> {
    let mut actions = Vec::new();
    while !reader.is_empty() {
        actions.push(action(&mut reader)?);
    }
    Ok(actions)
}

pub(super) fn emit(actions: &[Action], out: &mut Writer<'_>) {
    for action in actions {
        match *action {
            Action::Output { port, max_len } => {
                out.u16(OUTPUT).u16(16).u32(port).u16(max_len).pad(6);
            }
            Action::Group(group) => {
                out.u16(GROUP).u16(8).u32(group);
            }
        }
    }
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    Goto(u8),
    Write(Vec<Action>),
    Apply(Vec<Action>),
    Clear,
}

const GOTO: u16 = 1;
const METADATA: u16 = 2;
const WRITE: u16 = 3;
const APPLY: u16 = 4;
const CLEAR: u16 = 5;
const METER: u16 = 6;

fn instruction(reader: &mut Reader<'_>) -> Result<Instruction, Fault> {
    let kind = reader.u16()?;
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(4).filter(|_| len % 8 == 0);
    let body_len = body_len.ok_or(Fault::INSTRUCTION_BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::INSTRUCTION_BAD_LEN)?;
    let actions = |mut body: Reader<'_>| {
        body.take(4)?;
        parse(Reader::new(body.rest(), Fault::ACTION_BAD_LEN))
    };
    match kind {
        GOTO => {
            let table = body.u8()?;
            body.take(3)?;
            body.end()?;
            Ok(Instruction::Goto(table))
        }
        WRITE => Ok(Instruction::Write(actions(body)?)),
        APPLY => Ok(Instruction::Apply(actions(body)?)),
        CLEAR => {
            body.take(4)?;
            body.end()?;
            Ok(Instruction::Clear)
        }
        METADATA | METER => Err(Fault::UNSUPPORTED_INSTRUCTION),
        EXPERIMENTER => Err(Fault::INSTRUCTION_BAD_EXPERIMENTER),
        _ => Err(Fault::UNKNOWN_INSTRUCTION),
    }
}

/// Reads instructions to the end: each kind once (section 5.9).
pub(super) fn parse_instructions(mut reader: Reader<'_>) -> Result<Vec<Instruction>, Fault> {
    let mut instructions = Vec::<Instruction>::new();
    while !reader.is_empty() {
        let found = instruction(&mut reader)?;
        let kind = std::mem::discriminant(&found);
        let mut known = instructions.iter();
        if known.any(|known| std::mem::discriminant(known) == kind) {
            return Err(Fault::UNSUPPORTED_INSTRUCTION);
        }
        instructions.push(found);
    }
    Ok(instructions)
}

pub(super) fn emit_instructions(instructions: &[Instruction], out: &mut Writer<'_>) {
    for instruction in instructions {
        let start = out.at();
        match instruction {
            Instruction::Goto(table) => {
                out.u16(GOTO).u16(0).u8(*table).pad(3);
            }
            Instruction::Clear => {
                out.u16(CLEAR).u16(0).pad(4);
            }
            Instruction::Write(actions) => {
                out.u16(WRITE).u16(0).pad(4);
                emit(actions, out);
            }
            Instruction::Apply(actions) => {
                out.u16(APPLY).u16(0).pad(4);
                emit(actions, out);
            }
        }
        out.length(start, start + 2);
    }
}
