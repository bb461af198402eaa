# The tool as a Nix package: `nix build`, `nix run . -- build net.pb`. LLVM is linked dynamically,
# from nixpkgs.
{
  description = "Ahead-of-time compiler for TensorFlow, JAX, and ONNX models";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = builtins.fromTOML (builtins.readFile ./Cargo.toml);
    in
    {
      packages = each (pkgs: rec {
        tfcompile = pkgs.rustPlatform.buildRustPackage {
          pname = "tfcompile";
          version = manifest.workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "cli" ];
          # The tests need C++ compilers for many machines: run `make test` in a checkout.
          doCheck = false;
          nativeBuildInputs = [ pkgs.llvmPackages_22.llvm.dev pkgs.installShellFiles ];
          buildInputs = [ pkgs.llvmPackages_22.llvm pkgs.libffi pkgs.libxml2 pkgs.zlib pkgs.zstd ];
          # The bindings of LLVM look for this name.
          preBuild = ''
            mkdir -p bin
            ln -s ${pkgs.llvmPackages_22.llvm.dev}/bin/llvm-config bin/llvm-config-22
            export PATH=$PWD/bin:$PATH
          '';
          postInstall = ''
            $out/bin/tfcompile headers -o $out/include
            $out/bin/tfcompile man > tfcompile.1
            # The main page refers to the commands' pages.
            for command in $(sed -n 's/^tfcompile\\-\(.*\)(1)$/\1/p' tfcompile.1 | tr -d '\\'); do
              $out/bin/tfcompile man "$command" > "tfcompile-$command.1"
            done
            installManPage tfcompile*.1
            installShellCompletion --cmd tfcompile \
              --bash <($out/bin/tfcompile completions bash) \
              --fish <($out/bin/tfcompile completions fish) \
              --zsh <($out/bin/tfcompile completions zsh)
          '';
          meta = {
            description = "Ahead-of-time compiler for TensorFlow, JAX, and ONNX models";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "tfcompile";
            platforms = systems;
          };
        };
        default = tfcompile;
      });
    };
}
