//! Named dimensions in modules for other readers of HLO: a frontend attribute, which XLA keeps
//! without interpreting it.
//!
//! The attribute lists sizes as `1=1..64:0.0,2.1`: the number of the parameter that holds a size,
//! its range, and the dimensions of parameters that have it. Semicolons separate sizes.

use hlo::{Interface, Module, NamedDimension, SizeParameter};
use shape::Shape;

/// Name of the frontend attribute.
const NAME: &str = "named_dimensions";

/// Name of the module's attribute for frontend attributes.
const FRONTEND: &str = "frontend_attributes";

/// States the named dimensions of an interface in its module.
pub(crate) fn state(module: &mut Module, interface: &Interface) {
    let mut attributes = module.attributes().to_vec();
    let others = remove(&mut attributes);
    let sizes: Vec<String> = interface.sizes().map(|(size, _, range)| text(interface, size, range)).collect();
    if !sizes.is_empty() || !others.is_empty() {
        let own = (!sizes.is_empty()).then(|| format!("{NAME}=\"{}\"", sizes.join(";")));
        let all: Vec<String> = others.into_iter().chain(own).collect();
        attributes.push((FRONTEND.to_owned(), format!("{{{}}}", all.join(","))));
    }
    if attributes != module.attributes() {
        module.set_attributes(attributes);
    }
}

fn text(interface: &Interface, size: usize, range: hlo::SizeRange) -> String {
    let arguments = interface.arguments().iter().enumerate();
    let places = arguments.flat_map(|(k, argument)| {
        let own = argument.named_dimensions.iter().filter(move |named| named.size == size);
        own.map(move |named| format!("{k}.{}", named.dimension))
    });
    format!("{size}={range}:{}", places.collect::<Vec<_>>().join(","))
}

/// Makes the parameters that a module states to be sizes of named dimensions such parameters.
/// Returns the dimensions that have these sizes. A statement that does not fit the parameters
/// counts as absent.
pub(crate) fn restore(module: &mut Module) -> Vec<(usize, NamedDimension)> {
    let Some(stated) = stated(module) else { return Vec::new() };
    let parameters = module.entry_computation().program_shape().parameters;
    let (mut sizes, mut named) = (module.size_parameters().to_vec(), Vec::new());
    for size in stated.split(';') {
        let Some((parameter, dimensions)) = parse(size, &parameters) else { return Vec::new() };
        if sizes.iter().any(|known| known.parameter == parameter.parameter) {
            return Vec::new();
        }
        sizes.push(parameter);
        named.extend(dimensions);
    }
    module.set_size_parameters(sizes);
    named
}

/// Returns the value of the frontend attribute.
fn stated(module: &Module) -> Option<String> {
    let (_, text) = module.attributes().iter().find(|(name, _)| name == FRONTEND)?;
    let (_, rest) = text.split_once(&format!("{NAME}=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Takes the frontend attributes out of a list, and returns all but the own one.
fn remove(attributes: &mut Vec<(String, String)>) -> Vec<String> {
    let Some(place) = attributes.iter().position(|(name, _)| name == FRONTEND) else { return Vec::new() };
    let (_, text) = attributes.remove(place);
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}').trim().to_owned();
    let start = match inner.find(&format!("{NAME}=\"")) {
        Some(start) => start,
        None => return if inner.is_empty() { Vec::new() } else { vec![inner] },
    };
    let value = start + NAME.len() + 2;
    let end = inner[value..].find('"').map_or(inner.len(), |end| value + end + 1);
    let parts = [&inner[..start], &inner[end..]].map(|part| part.trim_matches([',', ' ']).to_owned());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Reads one size.
fn parse(text: &str, parameters: &[Shape]) -> Option<(SizeParameter, Vec<(usize, NamedDimension)>)> {
    let (size, rest) = text.split_once('=')?;
    let (range, places) = rest.split_once(':')?;
    let (low, high) = range.split_once("..")?;
    let (size, low, high): (usize, i64, i64) = (size.parse().ok()?, low.parse().ok()?, high.parse().ok()?);
    let is_size = parameters.get(size)? == &Shape::scalar(shape::PrimitiveType::S32);
    if !is_size || !(0..=high).contains(&low) || high > i64::from(i32::MAX) {
        return None;
    }
    let place = |text: &str| {
        let (argument, dimension) = text.split_once('.')?;
        let (argument, dimension): (usize, usize) = (argument.parse().ok()?, dimension.parse().ok()?);
        // Elements beyond the size must exist.
        let array = parameters.get(argument)?.as_array()?;
        let fits = array.dimensions.get(dimension)?.size >= high;
        fits.then_some((argument, NamedDimension { dimension, size }))
    };
    let places =
        places.split(',').filter(|place| !place.is_empty()).map(place).collect::<Option<Vec<_>>>()?;
    Some((SizeParameter { parameter: size, low, high }, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule m, frontend_attributes={a=\"b\"}\n\nENTRY e {\n  x = f32[64,8] parameter(0)\n  \
        n = s32[] parameter(1)\n  ROOT r = (f32[64,8]) tuple(x)\n}\n";

    #[test]
    fn named_dimensions_survive_a_text() {
        let module = hlo::parse(TEXT).expect("a module");
        let mut stated = module.clone();
        stated.set_size_parameters(vec![SizeParameter { parameter: 1, low: 1, high: 64 }]);
        let mut interface = Interface::of_module(&stated).expect("arrays");
        let named = (0, NamedDimension { dimension: 0, size: 1 });
        interface.add_named_dimensions([named]);
        state(&mut stated, &interface);
        state(&mut stated, &interface);
        let text = stated.to_text();
        assert!(text.contains("frontend_attributes={a=\"b\",named_dimensions=\"1=1..64:0.0\"}"), "{text}");
        let mut back = module;
        back.set_attributes(stated.attributes().to_vec());
        assert_eq!(restore(&mut back), [named]);
        assert_eq!(back.size_parameters(), stated.size_parameters());
    }

    #[test]
    fn statements_that_do_not_fit_are_ignored() {
        for wrong in
            ["1=1..65:0.0", "0=1..64:0.0", "1=5..4:0.0", "1=1..64:0.2", "1=1..64:7.0", "1", "9=1..2:"]
        {
            let attribute = format!("frontend_attributes={{named_dimensions=\"{wrong}\"}}");
            let mut module =
                hlo::parse(&TEXT.replace("frontend_attributes={a=\"b\"}", &attribute)).expect("a module");
            assert_eq!((restore(&mut module), module.size_parameters().len()), (Vec::new(), 0), "{wrong}");
        }
    }
}
