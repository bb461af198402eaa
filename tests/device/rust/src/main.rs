//! Runs models on a device, on host memory and on device memory, and prints the layer's results.

mod device_memory;

tfcompile_runtime::include_model!("inside");
tfcompile_runtime::include_model!("outside");

/// The argument of `layer_input` in `tests/artifacts/expect.h`.
const X: [[f32; 4]; 2] = [[-2.0, -1.0, 0.0, 1.0], [3.0, 1.0, -1.0, -3.0]];

/// The result for it: relu(x w + b) with w[k][j] = 3k + j + 1 and b = (1, -2, 3), by hand.
const Y: [[f32; 3]; 2] = [[5.0, 0.0, 3.0], [0.0, 0.0, 0.0]];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut missing = Inside::new();
    missing.set_device(1000)?;
    let error = missing.run().expect_err("no such device");
    assert!(error.message().contains("1000"), "{error}");

    let mut inside = Inside::new();
    inside.set_device(0)?;
    println!("inside {:?}", inside.call(&InsideInputs { arg_x: &X })?.result_y);
    assert!(inside.set_device(0).is_err(), "the device is open");

    let constants = tfcompile_runtime::Constants::read(env!("OUTSIDE_CONSTANTS"))?;
    let mut outside = Outside::new();
    assert!(outside.run().is_err() && outside.run_async().is_err(), "no constants");
    for _ in 0..2 {
        outside.set_constants(constants.clone())?;
        *outside.arg_x_mut() = X;
        std::thread::scope(|scope| scope.spawn(|| outside.run()).join().expect("no panic"))?;
        println!("outside {:?}", outside.result_y());
        outside.arg_x_on_device()?.copy_from(&X)?;
        outside.run_async()?;
    }
    // New constants wait for the run, and the model's own memory starts as zeros again.
    outside.set_constants(constants)?;
    let mut y = [[7.0; 3]; 2];
    outside.result_y_on_device()?.copy_to(&mut y)?;
    assert_eq!(y, [[0.0; 3]; 2]);
    device_memory::test()
}
