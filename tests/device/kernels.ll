; Kernels of the OpenCL test, in the form that tfcompile generates: one-dimensional workgroups, and
; addresses in address space 1 as parameters, of which the first is the guard. `kernels.spv.hex` is
; their SPIR-V: scripts/test_device_runtime.sh --kernels writes it with llc-22.

target triple = "spirv64-unknown-unknown"

declare spir_func i64 @_Z13get_global_idj(i32)

; out[i] = a[i] + b[i] for i < 1000
define spir_kernel void @add_f32(ptr addrspace(1) %guard, ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) {
entry:
  %address = ptrtoint ptr addrspace(1) %guard to i64
  %free = icmp eq i64 %address, 0
  br i1 %free, label %run, label %guarded
guarded:
  %value = load i32, ptr addrspace(1) %guard, align 4
  %off = icmp eq i32 %value, 0
  br i1 %off, label %done, label %run
run:
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %in = icmp ult i64 %i, 1000
  br i1 %in, label %add, label %done
add:
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i64 %i
  %po = getelementptr float, ptr addrspace(1) %out, i64 %i
  %x = load float, ptr addrspace(1) %pa, align 4
  %y = load float, ptr addrspace(1) %pb, align 4
  %s = fadd float %x, %y
  store float %s, ptr addrspace(1) %po, align 4
  br label %done
done:
  ret void
}

; guard = 1, count = 0
define spir_kernel void @begin(ptr addrspace(1) %unused, ptr addrspace(1) %state) {
entry:
  %count = getelementptr i32, ptr addrspace(1) %state, i64 1
  store i32 1, ptr addrspace(1) %state, align 4
  store i32 0, ptr addrspace(1) %count, align 4
  ret void
}

; guard = guard && trips > 0, --trips if so, count += guard
define spir_kernel void @step(ptr addrspace(1) %unused, ptr addrspace(1) %state, ptr addrspace(1) %trips) {
entry:
  %old = load i32, ptr addrspace(1) %state, align 4
  %left = load i32, ptr addrspace(1) %trips, align 4
  %was = icmp ne i32 %old, 0
  %more = icmp sgt i32 %left, 0
  %both = and i1 %was, %more
  %guard = zext i1 %both to i32
  store i32 %guard, ptr addrspace(1) %state, align 4
  %rest = sub i32 %left, %guard
  store i32 %rest, ptr addrspace(1) %trips, align 4
  %pc = getelementptr i32, ptr addrspace(1) %state, i64 1
  %count = load i32, ptr addrspace(1) %pc, align 4
  %sum = add i32 %count, %guard
  store i32 %sum, ptr addrspace(1) %pc, align 4
  ret void
}

; status = 2 if the value is negative
define spir_kernel void @check(ptr addrspace(1) %unused, ptr addrspace(1) %value, ptr addrspace(1) %status) {
entry:
  %x = load float, ptr addrspace(1) %value, align 4
  %bad = fcmp olt float %x, 0.0
  br i1 %bad, label %fail, label %done
fail:
  store i32 2, ptr addrspace(1) %status, align 4
  br label %done
done:
  ret void
}
