//! Parses `xla.OpSharding` from its text.

use super::super::annotations_text::{SHARD_GROUP_KINDS, SHARDING_KINDS};
use super::{MAX_DEPTH, enumerator, metadata, numbers_up_to, unknown};
use crate::proto::instruction_messages::ShardingMessage;
use crate::text::{Lexer, Token, read_list};
use support::Result;

/// `{replicated}`, `{devices=[2,1]0,1 shard_as 0}`, `{{replicated}, {manual
/// metadata={op_name="a"}}}`.
pub(super) fn sharding(lexer: &mut Lexer<'_>, depth: usize) -> Result<ShardingMessage> {
    if depth > MAX_DEPTH {
        return Err(lexer.error(&format!("shardings nest deeper than {MAX_DEPTH} levels")));
    }
    let is_tuple = matches!(lexer.peek_second(), Token::Symbol('{' | '}'));
    if is_tuple {
        let tuple_shardings = read_list(lexer, |lexer| sharding(lexer, depth + 1))?;
        return Ok(ShardingMessage { kind: kind("tuple"), tuple_shardings, ..ShardingMessage::default() });
    }
    let mut message = ShardingMessage::default();
    lexer.expect_symbol('{')?;
    while !lexer.eat_symbol('}') {
        let word = lexer.expect_word("a part of a sharding")?;
        match word {
            "devices" => {
                lexer.expect_symbol('=')?;
                message.kind = kind("other");
                devices(&mut message, lexer)?;
            }
            "maximal" => {
                message.kind = kind("maximal");
                message.tile_assignment_dimensions = vec![1];
                // Older texts omit the device, which means device 0.
                if lexer.eat(Token::Word("device")) {
                    lexer.expect_symbol('=')?;
                    message.tile_assignment_devices = vec![lexer.expect_integer("a device")?];
                } else {
                    message.tile_assignment_devices = vec![0];
                }
            }
            "replicated" | "manual" | "unknown" | "unreduced" => message.kind = kind(word),
            "last_tile_dim_replicate" => message.replicate_on_last_tile_dim = true,
            "last_tile_dims" => {
                lexer.expect_symbol('=')?;
                message.last_tile_dims =
                    read_list(lexer, |lexer| enumerator(&SHARDING_KINDS, lexer, "kind of sharding"))?;
            }
            "shard_as" | "shard_like" => {
                message.is_shard_group = true;
                message.shard_group_type = i32::from(word == SHARD_GROUP_KINDS[1]);
                message.shard_group_id = lexer.expect_integer("the number of a group")?;
            }
            "metadata" => {
                lexer.expect_symbol('=')?;
                message.metadata = match lexer.peek_second() {
                    Token::Symbol('{') => read_list(lexer, metadata)?,
                    _ => vec![metadata(lexer)?],
                };
            }
            other => return Err(unknown(&format!("a sharding with '{other}'"))),
        }
        lexer.eat_symbol(',');
    }
    Ok(message)
}

fn kind(name: &str) -> i32 {
    SHARDING_KINDS.iter().position(|kind| *kind == name).unwrap_or_default() as i32
}

/// `[2,2]0,1,2,3` or `[2,2]<=[4]T(1,0)`.
fn devices(message: &mut ShardingMessage, lexer: &mut Lexer<'_>) -> Result<()> {
    lexer.expect_symbol('[')?;
    message.tile_assignment_dimensions = numbers_up_to(lexer, ']')?;
    if lexer.eat(Token::AtMost) {
        (message.iota_reshape_dims, message.iota_transpose_perm) = iota(lexer)?;
        return Ok(());
    }
    loop {
        message.tile_assignment_devices.push(lexer.expect_integer("a device")?);
        // A comma can also separate the devices from the next part.
        let continues = lexer.peek() == Token::Symbol(',')
            && matches!(lexer.peek_second(), Token::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()));
        if !continues {
            return Ok(());
        }
        lexer.take();
    }
}

/// `[4,2]T(1,0)`: the devices in order, as an array of these sizes, and the order in which its
/// dimensions are traversed.
pub(super) fn iota(lexer: &mut Lexer<'_>) -> Result<(Vec<i64>, Vec<i32>)> {
    lexer.expect_symbol('[')?;
    let sizes: Vec<i64> = numbers_up_to(lexer, ']')?;
    let order = if lexer.eat(Token::Word("T")) {
        lexer.expect_symbol('(')?;
        numbers_up_to(lexer, ')')?
    } else {
        (0..sizes.len() as i32).collect()
    };
    Ok((sizes, order))
}
