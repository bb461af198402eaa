//! Runs the compiled model once, on zeros.

tfcompile_runtime::include_model!("@NAME@");

fn main() -> Result<(), tfcompile_runtime::Error> {
    let mut model = @CLASS@::new();
    model.run()?;
    println!("the model ran");
    Ok(())
}
