//! Runs on device memory: of the models and of others, on their streams and on others.

use std::error::Error;

tfcompile_runtime::include_model!("inside");
tfcompile_runtime::include_model!("train");
tfcompile_runtime::include_model!("reported");
tfcompile_runtime::include_model!("chosen");

type Tested = Result<(), Box<dyn Error>>;

pub fn test() -> Tested {
    own_memory()?;
    memory_and_streams_of_the_caller()?;
    copies_on_a_stream()?;
    variables()?;
    several_models()?;
    failed_assertions()?;
    sizes_that_depend_on_data()?;
    errors()
}

/// A model's own memory starts as zeros, and keeps what is written to it.
fn own_memory() -> Tested {
    let mut layer = Inside::new();
    layer.synchronize()?;
    let mut x = [[7.0; 4]; 2];
    layer.arg_x_on_device()?.copy_to(&mut x)?;
    assert_eq!(x, [[0.0; 4]; 2]);
    let mut y = [[7.0; 3]; 2];
    layer.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, [[0.0; 3]; 2]);

    layer.arg_x_on_device()?.copy_from(&crate::X)?;
    layer.run_async()?;
    layer.synchronize()?;
    layer.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, crate::Y);
    // Host memory is neither read nor written.
    assert_eq!((layer.arg_x(), layer.result_y()), (&[[0.0; 4]; 2], &[[0.0; 3]; 2]));
    // The bias alone: relu of 1, -2, 3.
    layer.arg_x_on_device()?.copy_from(&[[0.0; 4]; 2])?;
    layer.run_async()?;
    // A copy waits for the run.
    layer.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, [[1.0, 0.0, 3.0]; 2]);
    // A resident argument is not copied from the host.
    *layer.arg_x_mut() = crate::X;
    layer.arg_x_on_device()?.set_resident(true)?;
    layer.run()?;
    assert_eq!(layer.result_y(), &[[1.0, 0.0, 3.0]; 2]);
    layer.arg_x_on_device()?.set_resident(false)?;
    layer.run()?;
    assert_eq!(layer.result_y(), &crate::Y);
    Ok(())
}

/// The memory of one model is the argument and result of another one, which runs on its stream.
fn memory_and_streams_of_the_caller() -> Tested {
    let (mut owner, mut layer) = (Inside::new(), Inside::new());
    let from = owner.arg_x_on_device()?.address()?;
    let to = owner.result_y_on_device()?.address()?;
    assert!(from.is_multiple_of(16) && to.is_multiple_of(16) && from != to);
    let stream = owner.device()?.stream();
    assert!(!stream.is_null() && !owner.device()?.context().is_null());

    // SAFETY: both models are on device 0, the types are the same, and the owner does not run.
    unsafe {
        layer.arg_x_on_device()?.set_address(from);
        layer.result_y_on_device()?.set_address(to);
    }
    assert_eq!((layer.arg_x_on_device()?.address()?, layer.result_y_on_device()?.address()?), (from, to));
    owner.arg_x_on_device()?.copy_from(&crate::X)?;
    // SAFETY: the stream lives as long as its owner.
    unsafe { layer.run_async_on(stream) }?;
    layer.synchronize()?;
    let mut y = [[7.0; 3]; 2];
    owner.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, crate::Y);

    // Only the result is the caller's.
    // SAFETY: the model's own memory.
    unsafe { layer.arg_x_on_device()?.set_address(0) };
    assert_ne!(layer.arg_x_on_device()?.address()?, from);
    layer.run_async()?;
    layer.synchronize()?;
    owner.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, [[1.0, 0.0, 3.0]; 2]);
    Ok(())
}

/// Copies and a run in the order of one stream, without a wait between them.
fn copies_on_a_stream() -> Tested {
    let mut layer = Inside::new();
    let stream = layer.device()?.stream();
    let mut y = [[7.0; 3]; 2];
    // SAFETY: the arrays outlive `synchronize`, which waits for the run after the last copy.
    unsafe {
        layer.arg_x_on_device()?.copy_from_on(&crate::X, stream)?;
        layer.run_async_on(stream)?;
        layer.result_y_on_device()?.copy_to_on(&mut y, stream)?;
        layer.run_async_on(stream)?;
    }
    layer.synchronize()?;
    assert_eq!(y, crate::Y);
    Ok(())
}

/// kernel += scale * step, in place.
fn variables() -> Tested {
    let mut train = Train::new();
    train.var_layer_kernel_on_device()?.copy_from(&[10.0; 3])?;
    train.var_layer_scale_on_device()?.copy_from(&[1.0, 2.0, 3.0])?;
    train.arg0_on_device()?.copy_from(&2.0)?;
    train.run_async()?;
    train.run_async()?;
    train.synchronize()?;
    let (mut kernel, mut before) = ([0.0; 3], [0.0; 3]);
    train.var_layer_kernel_on_device()?.copy_to(&mut kernel)?;
    train.result_before_on_device()?.copy_to(&mut before)?;
    assert_eq!(kernel, [14.0, 18.0, 22.0]);
    // (kernel before the second step) * scale
    assert_eq!(before, [12.0, 28.0, 48.0]);

    // Runs on host memory continue from there.
    train.var_layer_kernel_on_device()?.set_resident(true)?;
    train.var_layer_scale_on_device()?.set_resident(true)?;
    *train.arg0_mut() = -2.0;
    train.run()?;
    assert_eq!(train.result_after(), &[12.0, 14.0, 16.0]);
    assert_eq!(train.var_layer_kernel(), &[0.0; 3]);
    train.var_layer_kernel_on_device()?.copy_to(&mut kernel)?;
    assert_eq!(kernel, [12.0, 14.0, 16.0]);

    // The variable of another model.
    let mut other = Train::new();
    // SAFETY: both models are on device 0, and the first one does not run.
    unsafe {
        let address = train.var_layer_kernel_on_device()?.address()?;
        other.var_layer_kernel_on_device()?.set_address(address);
    }
    other.var_layer_scale_on_device()?.copy_from(&[1.0; 3])?;
    other.arg0_on_device()?.copy_from(&100.0)?;
    other.run_async()?;
    other.synchronize()?;
    train.var_layer_kernel_on_device()?.copy_to(&mut kernel)?;
    assert_eq!(kernel, [112.0, 114.0, 116.0]);
    Ok(())
}

/// Runs of several models are in progress at once, and models are dropped while they run.
fn several_models() -> Tested {
    let mut layers = [Inside::new(), Inside::new(), Inside::new()];
    for layer in &mut layers {
        layer.arg_x_on_device()?.copy_from(&crate::X)?;
        layer.run_async()?;
    }
    let [first, layers @ ..] = layers;
    drop(first);
    for mut layer in layers {
        std::thread::scope(|scope| scope.spawn(|| layer.synchronize()).join().expect("no panic"))?;
        let mut y = [[7.0; 3]; 2];
        layer.result_y_on_device()?.copy_to(&mut y)?;
        assert_eq!(y, crate::Y);
    }
    Ok(())
}

fn failed_assertions() -> Tested {
    let mut reported = Reported::new();
    for _ in 0..2 {
        reported.arg_x_on_device()?.copy_from(&[-1.0, 0.0, 1.0])?;
        reported.run_async()?;
        let mut x = [0.0; 3];
        reported.arg_x_on_device()?.copy_to(&mut x)?;
        assert_eq!(x, [-1.0, 0.0, 1.0]);
        let error = reported.synchronize().expect_err("x must be positive");
        assert!(error.message().contains("assertion failed: [x must be positive]"), "{error}");
        reported.synchronize()?;
        reported.arg_x_on_device()?.copy_from(&[4.0, 5.0, 6.0])?;
        reported.run_async()?;
        reported.synchronize()?;
        let mut root = [0.0; 3];
        reported.result_root_on_device()?.copy_to(&mut root)?;
        assert_eq!(root[0], 2.0);
    }
    Ok(())
}

fn sizes_that_depend_on_data() -> Tested {
    let mut chosen = Chosen::new();
    for (x, places) in [([0, 3, 0, 0, 1], &[1, 4][..]), ([0; 5], &[]), ([1; 5], &[0, 1, 2, 3, 4])] {
        chosen.arg_x_on_device()?.copy_from(&x)?;
        chosen.run_async()?;
        chosen.synchronize()?;
        let mut all = [[7i64]; 5];
        chosen.result_places_on_device()?.copy_to(&mut all)?;
        let [count, width] = chosen.result_places_sizes();
        assert_eq!((&all.concat()[..count], width), (places, 1));
    }
    Ok(())
}

fn errors() -> Tested {
    let mut layer = Inside::new();
    let error = layer.result_y_on_device()?.set_resident(true).expect_err("a result");
    assert!(error.message().contains("only arguments"), "{error}");
    let mut missing = Inside::new();
    missing.set_device(1000)?;
    let error = missing.run_async().expect_err("no such device");
    assert!(error.message().contains("1000"), "{error}");
    assert!(missing.arg_x_on_device().is_err() && missing.device().is_err());
    // Until the device is open, another one can be selected.
    missing.set_device(0)?;
    missing.run_async()?;
    missing.synchronize()?;
    Ok(())
}
