"builtin.module"() <{sym_name = "jit_loss"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}, {}, {}], function_type = (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<64x16xf32>) -> (tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1][0]"}, {jax.result_info = "result[1][1]"}, {jax.result_info = "result[1][2]"}, {jax.result_info = "result[1][3]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg1: tensor<16x16xf32>, %arg2: tensor<16x16xf32>, %arg3: tensor<16x16xf32>, %arg4: tensor<16x16xf32>, %arg5: tensor<64x16xf32>):
    %3 = "stablehlo.dot_general"(%arg5, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %4 = "stablehlo.tanh"(%3) : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %5 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %7 = "stablehlo.subtract"(%6, %4) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %8 = "func.call"(%4) <{callee = @relu}> : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %9 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %11 = "stablehlo.compare"(%4, %10) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xi1>
    %12 = "stablehlo.dot_general"(%8, %arg2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %13 = "stablehlo.tanh"(%12) : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %14 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %15 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %16 = "stablehlo.subtract"(%15, %13) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %17 = "func.call"(%13) <{callee = @relu}> : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %18 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %19 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %20 = "stablehlo.compare"(%13, %19) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xi1>
    %21 = "stablehlo.dot_general"(%17, %arg3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %22 = "stablehlo.tanh"(%21) : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %23 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.broadcast_in_dim"(%23) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %25 = "stablehlo.subtract"(%24, %22) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %26 = "func.call"(%22) <{callee = @relu}> : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %27 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %28 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %29 = "stablehlo.compare"(%22, %28) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xi1>
    %30 = "stablehlo.dot_general"(%26, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %31 = "stablehlo.tanh"(%30) : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %32 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %33 = "stablehlo.broadcast_in_dim"(%32) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %34 = "stablehlo.subtract"(%33, %31) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %35 = "func.call"(%31) <{callee = @relu}> : (tensor<64x16xf32>) -> tensor<64x16xf32>
    %36 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %37 = "stablehlo.broadcast_in_dim"(%36) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %38 = "stablehlo.compare"(%31, %37) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xi1>
    %39 = "stablehlo.multiply"(%35, %35) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %40 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %41 = "stablehlo.reduce"(%39, %40) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %82 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%82) : (tensor<f32>) -> ()
    }) : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %42 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %43 = "stablehlo.broadcast_in_dim"(%42) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %44 = "stablehlo.multiply"(%35, %43) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %45 = "stablehlo.multiply"(%43, %35) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %46 = "stablehlo.add"(%44, %45) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %47 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %48 = "stablehlo.broadcast_in_dim"(%47) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %49 = "stablehlo.select"(%38, %46, %48) : (tensor<64x16xi1>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %50 = "stablehlo.multiply"(%49, %34) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %51 = "stablehlo.multiply"(%50, %31) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %52 = "stablehlo.add"(%50, %51) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %53 = "stablehlo.dot_general"(%52, %26) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
    %54 = "stablehlo.transpose"(%53) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %55 = "stablehlo.dot_general"(%52, %arg4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %56 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %57 = "stablehlo.broadcast_in_dim"(%56) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %58 = "stablehlo.select"(%29, %55, %57) : (tensor<64x16xi1>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %59 = "stablehlo.multiply"(%58, %25) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %60 = "stablehlo.multiply"(%59, %22) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %61 = "stablehlo.add"(%59, %60) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %62 = "stablehlo.dot_general"(%61, %17) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
    %63 = "stablehlo.transpose"(%62) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %64 = "stablehlo.dot_general"(%61, %arg3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %65 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %66 = "stablehlo.broadcast_in_dim"(%65) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %67 = "stablehlo.select"(%20, %64, %66) : (tensor<64x16xi1>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %68 = "stablehlo.multiply"(%67, %16) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %69 = "stablehlo.multiply"(%68, %13) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %70 = "stablehlo.add"(%68, %69) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %71 = "stablehlo.dot_general"(%70, %8) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
    %72 = "stablehlo.transpose"(%71) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %73 = "stablehlo.dot_general"(%70, %arg2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
    %74 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %75 = "stablehlo.broadcast_in_dim"(%74) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %76 = "stablehlo.select"(%11, %73, %75) : (tensor<64x16xi1>, tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %77 = "stablehlo.multiply"(%76, %7) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %78 = "stablehlo.multiply"(%77, %4) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %79 = "stablehlo.add"(%77, %78) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    %80 = "stablehlo.dot_general"(%79, %arg5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
    %81 = "stablehlo.transpose"(%80) <{permutation = array<i64: 1, 0>}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
    "func.return"(%41, %81, %72, %63, %54) : (tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<64x16xf32>) -> tensor<64x16xf32>, res_attrs = [{}], sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<64x16xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<64x16xf32>
    %2 = "stablehlo.maximum"(%arg0, %1) : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x16xf32>
    "func.return"(%2) : (tensor<64x16xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
