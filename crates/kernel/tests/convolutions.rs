//! Compiled convolutions of all kinds, compared with the evaluator.

use crate::harness::{Numbers, Tolerance, Values, check};

/// A convolution in canonical form.
#[derive(Clone, Debug)]
struct Case {
    element_type: &'static str,
    batch: i64,
    groups: i64,
    /// Features per group.
    inputs: i64,
    outputs: i64,
    spatial: Vec<Spatial>,
    constant_kernel: bool,
}

/// A spatial dimension: input elements and the window.
#[derive(Clone, Copy, Debug)]
struct Spatial {
    input: i64,
    size: i64,
    stride: i64,
    padding: (i64, i64),
    /// Dilation of the window and of the base.
    dilation: (i64, i64),
}

impl Spatial {
    fn new(input: i64, size: i64) -> Self {
        Self { input, size, stride: 1, padding: (0, 0), dilation: (1, 1) }
    }

    fn same(input: i64, size: i64) -> Self {
        Self { padding: ((size - 1) / 2, size / 2), ..Self::new(input, size) }
    }

    fn stride(self, stride: i64) -> Self {
        Self { stride, ..self }
    }

    fn output(&self) -> i64 {
        let base = if self.input == 0 { 0 } else { (self.input - 1) * self.dilation.1 + 1 };
        let room = base + self.padding.0 + self.padding.1 - ((self.size - 1) * self.dilation.0 + 1);
        if room < 0 || base + self.padding.0 + self.padding.1 <= 0 { 0 } else { room / self.stride + 1 }
    }
}

impl Case {
    fn new(batch: i64, inputs: i64, outputs: i64, spatial: &[Spatial]) -> Self {
        let spatial = spatial.to_vec();
        Self { element_type: "f32", batch, groups: 1, inputs, outputs, spatial, constant_kernel: false }
    }

    fn grouped(self, groups: i64) -> Self {
        Self { groups, ..self }
    }

    fn constant(self) -> Self {
        Self { constant_kernel: true, ..self }
    }

    fn of(self, element_type: &'static str) -> Self {
        Self { element_type, ..self }
    }

    fn shape(&self, first: i64, spatial: impl Fn(&Spatial) -> i64, last: &[i64]) -> String {
        let sizes: Vec<i64> = self.spatial.iter().map(spatial).collect();
        let first: &[i64] = if first < 0 { &[] } else { &[first] };
        let all: Vec<String> = first.iter().chain(&sizes).chain(last).map(ToString::to_string).collect();
        format!("{}[{}]", self.element_type, all.join(","))
    }

    fn input_shape(&self) -> String {
        self.shape(self.batch, |s| s.input, &[self.groups * self.inputs])
    }

    fn kernel_shape(&self) -> String {
        self.shape(-1, |s| s.size, &[self.inputs, self.groups * self.outputs])
    }

    fn output_shape(&self) -> String {
        self.shape(self.batch, Spatial::output, &[self.groups * self.outputs])
    }

    /// Returns the attributes of `convolution(x, w), ...`.
    fn attributes(&self) -> String {
        let join = |f: &dyn Fn(&Spatial) -> String| self.spatial.iter().map(f).collect::<Vec<_>>().join("x");
        let digits: String = (0..self.spatial.len()).map(|d| d.to_string()).collect();
        let mut text = String::new();
        if !self.spatial.is_empty() {
            text += &format!(
                "window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}, ",
                join(&|s| s.size.to_string()),
                join(&|s| s.stride.to_string()),
                join(&|s| format!("{}_{}", s.padding.0, s.padding.1)),
                join(&|s| s.dilation.1.to_string()),
                join(&|s| s.dilation.0.to_string()),
            );
        }
        text += &format!("dim_labels=b{digits}f_{digits}io->b{digits}f");
        if self.groups != 1 {
            text += &format!(", feature_group_count={}", self.groups);
        }
        text
    }

    /// Returns the kernel: a parameter, or a constant with different elements.
    fn kernel(&self) -> String {
        let shape = self.kernel_shape();
        if !self.constant_kernel {
            return format!("  w = {shape} parameter(1)\n");
        }
        let sizes: Vec<i64> = self.spatial.iter().map(|s| s.size).chain([self.inputs]).collect();
        let mut numbers = Numbers::new(7);
        let rows = sizes.iter().product::<i64>() * self.groups * self.outputs;
        let values: Vec<String> = (0..rows).map(|_| (numbers.below(17) as i64 - 8).to_string()).collect();
        let all = [&sizes[..], &[self.groups * self.outputs]].concat();
        format!("  w = {shape} constant({})\n", nested(&all, &values))
    }

    fn text(&self) -> String {
        format!(
            "HloModule convolutions\n\nENTRY main {{\n  x = {} parameter(0)\n{}  ROOT r = {} convolution(x, w), {}\n}}\n",
            self.input_shape(),
            self.kernel(),
            self.output_shape(),
            self.attributes()
        )
    }

    fn tolerance(&self) -> Tolerance {
        // The terms cancel, so the order matters more for longer sums.
        let summands = self.spatial.iter().map(|s| s.size).product::<i64>() * self.inputs;
        let longer = 1.0 + summands as f64 / 64.0;
        match self.element_type {
            "f32" | "c64" => Tolerance::Relative(5e-5 * longer),
            "f64" | "c128" => Tolerance::Relative(4e-14 * longer),
            "f16" => Tolerance::Relative(2e-3),
            "bf16" => Tolerance::Relative(2e-2),
            _ => Tolerance::Exact,
        }
    }

    fn check(&self) {
        check(&self.text(), &[Values::Tame], self.tolerance());
    }
}

/// Returns the text of an array of these sizes.
fn nested(sizes: &[i64], values: &[String]) -> String {
    match sizes {
        [] => values[0].clone(),
        [first, rest @ ..] => {
            let each = values.len() / (*first).max(1) as usize;
            let parts: Vec<String> = values.chunks(each.max(1)).map(|part| nested(rest, part)).collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

#[test]
fn windows_of_every_shape() {
    use Spatial as S;
    let strided = S { padding: (0, 1), ..S::new(12, 3).stride(2) };
    let dilated = S { dilation: (2, 1), padding: (2, 2), ..S::new(11, 3) };
    let transposed = S { dilation: (1, 2), padding: (2, 1), ..S::new(6, 3) };
    let transposed_more = S { dilation: (2, 3), padding: (4, -1), stride: 2, ..S::new(6, 4) };
    let cropped = S { padding: (-1, -2), ..S::new(12, 3) };
    let mostly_padding = S { padding: (5, 6), ..S::new(2, 3) };
    for spatial in [S::same(9, 3), strided, dilated, transposed, transposed_more, cropped, mostly_padding] {
        for constant in [false, true] {
            let case = Case::new(2, 5, 24, &[spatial, spatial]);
            if constant { case.constant().check() } else { case.check() }
        }
        Case::new(1, 3, 17, &[spatial]).check();
    }
}

#[test]
fn every_number_of_dimensions() {
    use Spatial as S;
    Case::new(5, 7, 9, &[]).check();
    Case::new(2, 4, 20, &[S::same(30, 5)]).constant().check();
    Case::new(2, 3, 16, &[S::same(4, 3), S::same(5, 3), S::same(7, 3)]).constant().check();
    Case::new(1, 2, 3, &[S::same(4, 3), S::new(3, 2), S::same(3, 2), S::same(4, 3)]).check();
}

#[test]
fn every_element_type() {
    use Spatial as S;
    for element_type in [
        "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f64", "c64", "c128", "s4", "u4",
    ] {
        for constant in [false, true] {
            let case = Case::new(2, 6, 19, &[S::same(7, 3), S::same(6, 3).stride(2)]).of(element_type);
            let constant = constant && !element_type.contains('4');
            if constant && element_type.starts_with(['s', 'f', 'b']) {
                case.constant().check();
            } else {
                case.check();
            }
        }
    }
}

#[test]
fn wider_sums_than_operands() {
    let text = "HloModule wide\n\nENTRY main {\n  x = s8[2,9,9,16] parameter(0)\n  w = s8[3,3,16,24] parameter(1)\n  ROOT r = s32[2,7,7,24] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f\n}\n";
    check(text, &[Values::Hard], Tolerance::Exact);
    let text = "HloModule wide\n\nENTRY main {\n  x = bf16[1,9,9,16] parameter(0)\n  w = bf16[3,3,16,24] parameter(1)\n  ROOT r = f32[1,7,7,24] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f\n}\n";
    check(text, &[Values::Tame], Tolerance::Relative(1e-4));
}

/// Panels keep the narrow type, and tiles widen it.
#[test]
fn constant_kernels_narrower_than_sums() {
    use Spatial as S;
    let cases = [
        Case::new(1, 3, 32, &[S::same(12, 7).stride(2), S::same(12, 7).stride(2)]),
        Case::new(2, 64, 40, &[S::new(7, 1), S::new(5, 1)]),
        Case::new(1, 16, 16, &[S::same(8, 3), S::same(8, 3)]).grouped(4),
        Case::new(1, 17, 5, &[S::same(30, 5)]),
        Case::new(1, 200, 72, &[S::new(1, 1)]),
    ];
    for case in cases {
        let text = case.clone().constant().text();
        assert!(text.contains("w = f32["), "{text}");
        for ty in ["f16", "bf16"] {
            check(&text.replace("w = f32[", &format!("w = {ty}[")), &[Values::Tame], case.tolerance());
        }
    }
}

#[test]
fn odd_numbers_of_features() {
    use Spatial as S;
    for (inputs, outputs) in [(1, 1), (1, 3), (3, 5), (5, 24), (17, 17), (24, 33), (2, 70), (8, 100), (0, 4)]
    {
        for constant in [false, true] {
            let case = Case::new(1, inputs, outputs, &[S::same(10, 3), S::same(13, 3)]);
            if constant && inputs > 0 { case.constant().check() } else { case.check() }
        }
    }
}

#[test]
fn one_by_one() {
    use Spatial as S;
    for (batch, height, width) in [(1, 7, 7), (3, 5, 4), (1, 1, 1), (1, 14, 14), (2, 1, 1)] {
        let case = Case::new(batch, 20, 40, &[S::new(height, 1), S::new(width, 1)]);
        case.clone().check();
        case.constant().check();
        Case::new(batch, 9, 21, &[S::new(height, 1).stride(2), S::new(width, 1).stride(2)])
            .constant()
            .check();
    }
}

#[test]
fn depthwise() {
    use Spatial as S;
    for channels in [1, 2, 3, 5, 17, 24, 32, 96, 100] {
        for multiplier in [1, 2, 3, 4, 8] {
            if channels * multiplier > 150 || (multiplier > 2 && channels % 2 == 1) {
                continue;
            }
            let spatial = [S::same(9, 3), S::same(16, 3)];
            Case::new(1, 1, multiplier, &spatial).grouped(channels).constant().check();
            Case::new(2, 1, multiplier, &spatial.map(|s| s.stride(2))).grouped(channels).check();
        }
    }
    let wide = S { dilation: (2, 1), ..S::same(20, 7) };
    Case::new(1, 1, 1, &[S::same(8, 5), wide]).grouped(32).check();
    Case::new(2, 1, 1, &[wide]).grouped(40).check();
    Case::new(1, 1, 1, &[S::same(4, 3), S::same(5, 3), S::same(9, 3)]).grouped(20).check();
    let transposed = S { dilation: (1, 2), padding: (2, 1), ..S::new(6, 3) };
    Case::new(1, 1, 1, &[transposed, transposed]).grouped(20).check();
    for element_type in ["f64", "s32", "bf16", "c64", "s8"] {
        Case::new(1, 1, 1, &[S::same(6, 3), S::same(12, 3)]).grouped(20).of(element_type).check();
    }
}

#[test]
fn grouped() {
    use Spatial as S;
    for (groups, inputs, outputs) in [(2, 8, 16), (3, 5, 7), (4, 16, 32), (32, 4, 4), (2, 3, 1), (5, 1, 20)] {
        let spatial = [S::same(6, 3), S::same(9, 3)];
        Case::new(2, inputs, outputs, &spatial).grouped(groups).constant().check();
        Case::new(1, inputs, outputs, &spatial.map(|s| s.stride(2))).grouped(groups).check();
    }
}

/// Returns the gradient of a kernel, with input `[batch, spatial.., inputs]` and gradient `[batch,
/// window.., outputs]`, and its epilogue.
fn gradient(case: &Case) -> String {
    let digits: String = (0..case.spatial.len()).map(|d| d.to_string()).collect();
    let join = |f: &dyn Fn(&Spatial) -> String| case.spatial.iter().map(f).collect::<Vec<_>>().join("x");
    let window = format!(
        "window={{size={} stride={} pad={} rhs_dilate={}}}",
        join(&|s| s.size.to_string()),
        join(&|s| s.stride.to_string()),
        join(&|s| format!("{}_{}", s.padding.0, s.padding.1)),
        join(&|s| s.dilation.0.to_string()),
    );
    let (x, w) = (case.input_shape(), case.shape(case.batch, |s| s.size, &[case.outputs]));
    let r = case.shape(-1, Spatial::output, &[case.inputs, case.outputs]);
    let parameters = format!("  x = {x} parameter(0)\n  g = {w} parameter(1)\n  v = {r} parameter(2)\n");
    format!(
        "HloModule gradients\n\nfused {{\n{parameters}  c = {r} convolution(x, g), {window}, \
         dim_labels=f{digits}b_i{digits}o->{digits}bf\n  ROOT d = {r} subtract(v, c)\n}}\n\nENTRY main {{\n{parameters}  \
         ROOT r = {r} fusion(x, g, v), kind=kOutput, calls=fused\n}}\n"
    )
}

#[test]
fn gradients_of_kernels() {
    use Spatial as S;
    let check_gradient = |case: Case| {
        let summands = case.spatial.iter().map(|s| s.size).product::<i64>() * case.batch;
        let longer = 1.0 + summands as f64 / 64.0;
        let tolerance = if case.element_type == "f64" { 4e-14 } else { 5e-5 };
        check(&gradient(&case), &[Values::Tame], Tolerance::Relative(tolerance * longer));
    };
    // A window of three taps over `pixels` pixels, padded to keep their number.
    let three = |pixels: i64| S { padding: (1, 1), ..S::new(pixels, pixels) };
    for (inputs, outputs) in
        [(1, 1), (3, 16), (3, 5), (16, 16), (8, 24), (17, 33), (32, 64), (5, 70), (1, 100), (40, 15), (64, 7)]
    {
        check_gradient(Case::new(2, inputs, outputs, &[three(6), three(9)]));
        check_gradient(Case::new(1, inputs, outputs, &[three(11)]).of("f64"));
    }
    // Blocks of lines and of images, with a smaller last block.
    check_gradient(Case::new(3, 16, 16, &[three(33), three(32)]));
    check_gradient(Case::new(1, 48, 40, &[three(45), three(20)]));
    check_gradient(Case::new(37, 24, 32, &[three(5), three(5)]));
    // Strides of the convolution dilate the gradient, and its dilation is the stride here.
    let strided = S { padding: (0, 1), dilation: (2, 1), ..S::new(12, 6) };
    check_gradient(Case::new(2, 12, 20, &[strided, strided]));
    let dilated = S { padding: (2, 2), stride: 2, ..S::new(12, 12) };
    check_gradient(Case::new(2, 3, 20, &[dilated, dilated]));
    check_gradient(Case::new(2, 16, 32, &[S { dilation: (2, 1), ..S::new(16, 8) }; 2]));
    // Three dimensions, taps that only meet padding, and crops.
    check_gradient(Case::new(2, 3, 9, &[three(3), three(4), three(5)]));
    check_gradient(Case::new(2, 4, 9, &[S { padding: (7, 9), ..S::new(4, 3) }, three(5)]));
    check_gradient(Case::new(2, 4, 9, &[S { padding: (-1, -2), ..S::new(9, 4) }, S::new(5, 5)]));
    check_gradient(Case::new(2, 4, 9, &[S { padding: (-1, 3), dilation: (2, 1), ..S::new(9, 4) }, three(6)]));
}

/// Bias, residual, and activation are computed on the tile before it is stored.
#[test]
fn epilogues_are_fused() {
    use Spatial as S;
    let spatial = [S::same(10, 3), S::same(14, 3)];
    for case in [
        Case::new(2, 8, 40, &spatial),
        Case::new(2, 8, 19, &spatial),
        Case::new(1, 3, 20, &[S::new(9, 1), S::new(5, 1)]),
        Case::new(1, 1, 1, &spatial).grouped(40),
        Case::new(1, 2, 3, &spatial).grouped(5),
    ] {
        let (x, w, r) = (case.input_shape(), case.kernel_shape(), case.output_shape());
        let features = case.groups * case.outputs;
        let inside = format!(
            "  c = {r} convolution(x, w), {}\n  wide = {r} broadcast(bias), dimensions={{3}}\n  biased = {r} add(c, wide)\n  sum = {r} add(biased, residual)\n  zero = f32[] constant(0)\n  six = f32[] constant(6)\n  ROOT y = {r} clamp(zero, sum, six)\n",
            case.attributes()
        );
        let parameters = format!(
            "  x = {x} parameter(0)\n  w = {w} parameter(1)\n  bias = f32[{features}] parameter(2)\n  residual = {r} parameter(3)\n"
        );
        let text = format!(
            "HloModule fused\n\nfused {{\n{parameters}{inside}}}\n\nENTRY main {{\n{parameters}  ROOT r = {r} fusion(x, w, bias, residual), kind=kOutput, calls=fused\n}}\n"
        );
        check(&text, &[Values::Tame], case.tolerance());
        let swish = text.replace(
            "  zero = f32[] constant(0)\n  six = f32[] constant(6)\n",
            &format!("  gate = {r} logistic(sum)\n"),
        );
        let swish = swish.replace("clamp(zero, sum, six)", "multiply(sum, gate)");
        check(&swish, &[Values::Tame], case.tolerance());
    }
}

#[test]
fn random_convolutions() {
    let mut numbers = Numbers::new(20);
    for _ in 0..60 {
        let mut pick = |choices: &[i64]| choices[numbers.below(choices.len() as u64) as usize];
        let rank = pick(&[1, 2, 2, 2, 3]);
        let spatial: Vec<Spatial> = (0..rank)
            .map(|_| Spatial {
                input: pick(&[1, 2, 5, 6, 9, 13]),
                size: pick(&[1, 1, 2, 3, 3, 4]),
                stride: pick(&[1, 1, 1, 2, 3]),
                padding: (pick(&[0, 0, 1, 2, 4, -1]), pick(&[0, 0, 1, 2, 4, -1])),
                dilation: (pick(&[1, 1, 1, 2]), pick(&[1, 1, 1, 2, 3])),
            })
            .collect();
        let groups = pick(&[1, 1, 1, 2, 6, 20]);
        let inputs = if groups == 20 { 1 } else { pick(&[1, 2, 3, 4, 8, 17]) };
        let outputs = if groups == 20 { pick(&[1, 1, 2]) } else { pick(&[1, 3, 8, 16, 24, 37, 70]) };
        let case = Case::new(pick(&[1, 1, 2, 3]), inputs, outputs, &spatial).grouped(groups);
        let case = case.of(["f32", "f32", "f32", "f64", "s32"][pick(&[0, 1, 2, 3, 4]) as usize]);
        if pick(&[0, 1]) == 1 { case.constant().check() } else { case.check() }
    }
}
