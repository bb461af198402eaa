//! Parses an instruction's attributes from their texts.

use super::super::attributes_text::{ALGORITHMS, API_VERSIONS, PADDING_TYPES, PRECISIONS, SCHEDULES};
use super::sharding::{iota, sharding};
use super::{
    MAX_DEPTH, enumerator, fields, frontend_attributes, metadata_field, numbers, original_array, string,
    unknown,
};
use crate::attributes::Window;
use crate::proto::dimensions::window_proto;
use crate::proto::instruction_messages::*;
use crate::proto::messages::{ConvolutionDimensionNumbersProto, DotDimensionNumbersProto, OpMetadataProto};
use crate::proto::{literal, shape_proto};
use crate::text::{Lexer, Token, parse_value, read_list, read_shape, read_shaped_literal};
use support::Result;

/// Sets the fields of an attribute that an instruction stores as text. An error names the part that
/// only text can represent.
pub(in crate::proto) fn fill(message: &mut HloInstructionProto, name: &str, text: &str) -> Result<()> {
    let mut lexer = Lexer::new(text, 0);
    match name {
        // Unchanged if it is not a quoted string.
        "backend_config" => message.backend_config = bytes(text)?,
        _ => {
            let is_known = shared_attribute(message, name, &mut lexer)?
                || device_attribute(message, name, &mut lexer)?
                || transfer_attribute(message, name, &mut lexer)?
                || product_attribute(message, name, &mut lexer)?
                || custom_call_attribute(message, name, text, &mut lexer)?;
            if !is_known {
                return Err(unknown(&format!("the attribute '{name}'")));
            }
            lexer.expect_end()?;
        }
    }
    Ok(())
}

/// Adds the fields of an instruction's metadata that are stored as text: `source_column=3
/// profile_type={1}`.
pub(in crate::proto) fn fill_metadata(message: &mut OpMetadataProto, text: &str) -> Result<()> {
    let mut lexer = Lexer::new(text, 0);
    while lexer.peek() != Token::End {
        let name = lexer.expect_word("a field of the metadata")?;
        lexer.expect_symbol('=')?;
        metadata_field(message, name, &mut lexer)?;
        lexer.eat_symbol(',');
    }
    Ok(())
}

fn bytes(text: &str) -> Result<Vec<u8>> {
    parse_value::<String>(text).map(String::into_bytes)
}

fn flag(lexer: &mut Lexer<'_>) -> Result<bool> {
    <bool as crate::text::Value>::read(lexer)
}

/// Attributes that every instruction can have.
fn shared_attribute(message: &mut HloInstructionProto, name: &str, lexer: &mut Lexer<'_>) -> Result<bool> {
    match name {
        "sharding" => message.sharding = Some(sharding(lexer, 0)?),
        "frontend_attributes" => message.frontend_attributes = Some(frontend_attributes(lexer)?),
        "parameter_replication" => {
            let replicated_at_leaf_buffers = read_list(lexer, flag)?;
            message.parameter_replication = Some(ParameterReplicationMessage { replicated_at_leaf_buffers });
        }
        "statistics" => message.statistics_viz = Some(statistics(lexer)?),
        "origin" => message.original_value = Some(origin(lexer)?),
        "result_accuracy" => message.result_accuracy = Some(accuracy(lexer)?),
        "type" => message.comparison_type = lexer.expect_word("a type of comparison")?.to_owned(),
        "inferred_dimension" => message.dimensions = vec![lexer.expect_integer("a dimension")?],
        "is_composite" => message.is_composite = flag(lexer)?,
        "dimensions" => message.dimensions = numbers(lexer)?,
        "output_to_operand_aliasing" => {
            message.output_operand_aliasing = read_list(lexer, |lexer| {
                let output_shape_index = numbers(lexer)?;
                lexer.expect_symbol(':')?;
                lexer.expect_symbol('(')?;
                let operand_index = lexer.expect_integer("an operand's number")?;
                lexer.expect_symbol(',')?;
                let operand_shape_index = numbers(lexer)?;
                lexer.expect_symbol(')')?;
                Ok(OutputOperandAliasingMessage { output_shape_index, operand_index, operand_shape_index })
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn device_attribute(message: &mut HloInstructionProto, name: &str, lexer: &mut Lexer<'_>) -> Result<bool> {
    match name {
        "channel_id" => message.channel_id = lexer.expect_integer("a channel")?,
        "use_global_device_ids" => message.use_global_device_ids = flag(lexer)?,
        "constrain_layout" => message.constrain_layout = flag(lexer)?,
        "replica_groups" => {
            let groups = replica_groups(lexer)?;
            // Newer versions of XLA read this field; older ones read the one with all lists.
            message.iota_collective_device_list = groups.iota_replica_group_list.clone();
            message.collective_device_list = Some(groups);
        }
        "source_target_pairs" => {
            message.source_target_pairs = read_list(lexer, |lexer| match numbers(lexer)?[..] {
                [source, target] => Ok(SourceTargetMessage { source, target }),
                _ => Err(lexer.error("expected a source and a target")),
            })?;
        }
        // The sizes of all slices, concatenated.
        "slice_sizes" => message.dynamic_slice_sizes = read_list(lexer, numbers)?.concat(),
        "domain" => {
            fields(lexer, |name, lexer| {
                match name {
                    "kind" => drop(string(lexer)?),
                    // In the message, the entry is on the side of the operand; in the text, on that
                    // of the users.
                    "entry" => message.domain_exit_sharding = Some(sharding(lexer, 0)?),
                    "exit" => message.domain_entry_sharding = Some(sharding(lexer, 0)?),
                    other => return Err(unknown(&format!("the field '{other}' of a domain"))),
                }
                Ok(())
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)`.
fn replica_groups(lexer: &mut Lexer<'_>) -> Result<DeviceListMessage> {
    let mut message = DeviceListMessage::default();
    if !lexer.eat_symbol('[') {
        let group = |lexer: &mut Lexer<'_>| Ok(ReplicaGroupMessage { replica_ids: numbers(lexer)? });
        message.replica_groups = read_list(lexer, group)?;
        return Ok(message);
    }
    let sizes = super::numbers_up_to(lexer, ']')?;
    let [num_replica_groups, num_devices_per_group] = sizes[..] else {
        return Err(lexer.error("expected the number of groups and the number of devices in each"));
    };
    if !lexer.eat(Token::AtMost) {
        return Err(lexer.expected("'<='"));
    }
    let (iota_reshape_dims, iota_transpose_perm) = iota(lexer)?;
    message.iota_replica_group_list = Some(IotaGroupsMessage {
        num_replica_groups,
        num_devices_per_group,
        iota_reshape_dims,
        iota_transpose_perm,
    });
    Ok(message)
}

fn transfer_attribute(message: &mut HloInstructionProto, name: &str, lexer: &mut Lexer<'_>) -> Result<bool> {
    match name {
        "is_host_transfer" => message.is_host_transfer = flag(lexer)?,
        "outfeed_shape" => message.outfeed_shape = Some(shape_proto(&read_shape(lexer)?)?),
        "infeed_config" => message.infeed_config = string(lexer)?.into_bytes(),
        "outfeed_config" => message.outfeed_config = string(lexer)?.into_bytes(),
        "async_execution_thread" => message.async_execution_thread = string(lexer)?,
        "cross_program_prefetch_index" => {
            message.cross_program_prefetch_index = Some(lexer.expect_integer("a number")?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Dimension numbers of products, and their precision.
fn product_attribute(message: &mut HloInstructionProto, name: &str, lexer: &mut Lexer<'_>) -> Result<bool> {
    match name {
        "operand_precision" => {
            let precision = |lexer: &mut Lexer<'_>| enumerator(&PRECISIONS, lexer, "precision");
            message.precision_config.get_or_insert_default().operand_precision = read_list(lexer, precision)?;
        }
        "algorithm" => {
            let algorithm = enumerator(&ALGORITHMS, lexer, "algorithm of a dot")?;
            message.precision_config.get_or_insert_default().algorithm = algorithm;
        }
        "lhs_contracting_dims" => dot(message).lhs_contracting_dimensions = numbers(lexer)?,
        "rhs_contracting_dims" => dot(message).rhs_contracting_dimensions = numbers(lexer)?,
        "lhs_batch_dims" => dot(message).lhs_batch_dimensions = numbers(lexer)?,
        "rhs_batch_dims" => dot(message).rhs_batch_dimensions = numbers(lexer)?,
        "lhs_ragged_dims" => ragged(message).lhs_ragged_dimensions = numbers(lexer)?,
        "rhs_group_dims" => ragged(message).rhs_group_dimensions = numbers(lexer)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn ragged(message: &mut HloInstructionProto) -> &mut RaggedDotMessage {
    message.ragged_dot_dimension_numbers.get_or_insert_default()
}

fn dot(message: &mut HloInstructionProto) -> &mut DotDimensionNumbersProto {
    match message.opcode.as_str() {
        "ragged-dot" => ragged(message).dot_dimension_numbers.get_or_insert_default(),
        _ => message.dot_dimension_numbers.get_or_insert_default(),
    }
}

fn custom_call_attribute(
    message: &mut HloInstructionProto,
    name: &str,
    text: &str,
    lexer: &mut Lexer<'_>,
) -> Result<bool> {
    match name {
        "api_version" => {
            message.custom_call_api_version = enumerator(&API_VERSIONS, lexer, "API version")?;
        }
        "schedule" => message.custom_call_schedule = enumerator(&SCHEDULES, lexer, "schedule")?,
        "padding_type" => message.padding_type = enumerator(&PADDING_TYPES, lexer, "padding type")?,
        "operand_layout_constraints" => {
            message.constrain_layout = true;
            message.operand_shapes_with_layout = read_list(lexer, |lexer| shape_proto(&read_shape(lexer)?))?;
        }
        "feature_group_count" => message.feature_group_count = lexer.expect_integer("a number of groups")?,
        "batch_group_count" => message.batch_group_count = lexer.expect_integer("a number of groups")?,
        "window" => {
            message.window = Some(window_proto(&parse_value::<Window>(text)?));
            lexer.take_rest();
        }
        "dim_labels" => {
            let numbers = dim_labels(lexer.take_rest())
                .ok_or_else(|| lexer.error("expected dimension labels such as b01f_01io->b01f"))?;
            message.convolution_dimension_numbers = Some(numbers);
        }
        "literal" => message.literal = Some(literal::proto(&read_shaped_literal(lexer)?)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// `?b01f_0?1io->b01?f`: custom calls can omit dimensions.
fn dim_labels(text: &str) -> Option<ConvolutionDimensionNumbersProto> {
    let (operands, output) = text.trim().split_once("->")?;
    let (input, kernel) = operands.split_once('_')?;
    let place = |labels: &str, label: char| labels.find(label).map(|place| place as i64);
    let spatial = |labels: &str| ('0'..='9').map_while(|digit| place(labels, digit)).collect();
    Some(ConvolutionDimensionNumbersProto {
        input_batch_dimension: place(input, 'b')?,
        input_feature_dimension: place(input, 'f')?,
        input_spatial_dimensions: spatial(input),
        kernel_input_feature_dimension: place(kernel, 'i')?,
        kernel_output_feature_dimension: place(kernel, 'o')?,
        kernel_spatial_dimensions: spatial(kernel),
        output_batch_dimension: place(output, 'b')?,
        output_feature_dimension: place(output, 'f')?,
        output_spatial_dimensions: spatial(output),
    })
}

/// `{visualizing_index=1,stat-1=33,stat-2=44}`.
fn statistics(lexer: &mut Lexer<'_>) -> Result<StatisticsMessage> {
    let mut message = StatisticsMessage::default();
    fields(lexer, |name, lexer| {
        if name == "visualizing_index" {
            message.stat_index_to_visualize = lexer.expect_integer("an index")?;
        } else {
            let stat_val = lexer.expect_integer("a number")?;
            message.statistics.push(StatisticMessage { stat_name: name.to_owned(), stat_val });
        }
        Ok(())
    })?;
    Ok(message)
}

/// `{({"a" {0}}, {})}`: the source of each array in a shape, if known.
fn origin(lexer: &mut Lexer<'_>) -> Result<OriginalValueMessage> {
    fn node(
        lexer: &mut Lexer<'_>,
        index: &mut Vec<i64>,
        elements: &mut Vec<OriginalElementMessage>,
    ) -> Result<()> {
        if index.len() > MAX_DEPTH {
            return Err(lexer.error(&format!("tuples nest deeper than {MAX_DEPTH} levels")));
        }
        if !lexer.eat_symbol('(') {
            lexer.expect_symbol('{')?;
            let original_array = original_array(lexer)?;
            elements.push(OriginalElementMessage { shape_index: index.clone(), original_array });
            return lexer.expect_symbol('}');
        }
        let mut place = 0;
        while !lexer.eat_symbol(')') {
            if place > 0 {
                lexer.expect_symbol(',')?;
            }
            index.push(place);
            node(lexer, index, elements)?;
            index.pop();
            place += 1;
        }
        Ok(())
    }
    let mut message = OriginalValueMessage::default();
    lexer.expect_symbol('{')?;
    node(lexer, &mut Vec::new(), &mut message.elements)?;
    lexer.expect_symbol('}')?;
    Ok(message)
}

/// `{mode=highest}` or `{tolerance={atol=0.1,rtol=0.1,ulps=2}}`.
fn accuracy(lexer: &mut Lexer<'_>) -> Result<ResultAccuracyMessage> {
    let mut message = ResultAccuracyMessage::default();
    fields(lexer, |name, lexer| {
        match name {
            "mode" => message.mode = enumerator(&["default", "highest"], lexer, "accuracy")?,
            "tolerance" => {
                let mut tolerance = ToleranceMessage::default();
                fields(lexer, |name, lexer| {
                    match name {
                        "atol" => tolerance.atol = lexer.expect_integer("a number")?,
                        "rtol" => tolerance.rtol = lexer.expect_integer("a number")?,
                        "ulps" => tolerance.ulps = lexer.expect_integer("a number")?,
                        other => return Err(unknown(&format!("the field '{other}' of a tolerance"))),
                    }
                    Ok(())
                })?;
                message.tolerance = Some(tolerance);
            }
            other => return Err(unknown(&format!("the field '{other}' of an accuracy"))),
        }
        Ok(())
    })?;
    Ok(message)
}
