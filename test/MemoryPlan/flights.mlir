// The independent check of collectives in flight: each case breaks one rule.
// RUN: ckopt-opt %s --verify-arena --split-input-file --verify-diagnostics

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @start(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.collective_start %x {collective = "all_reduce", ranks = 2 : i64} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<64xui8>
}
func.func private @wait(%r: tensor<16xf32>, %s: tensor<64xui8>) -> tensor<16xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.collective_wait %r, %s {ranks = 2 : i64} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// Sums in the bytes of what nothing else reads: no error.
func.func @in_place(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> (tensor<16xf32>, tensor<16xf32>) attributes {ckopt.arena_bytes = 256 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %s:2 = ckopt.kernel_call @start(%a) {aliases = array<i64: 0, 0>, offsets = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  %b = ckopt.kernel_call @f(%x) {offsets = array<i64: 192>} : (tensor<16xf32>) -> tensor<16xf32>
  %w = ckopt.kernel_call @wait(%s#0, %s#1) {aliases = array<i64: 0, 0>, offsets = array<i64: 64>} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %b, %w : tensor<16xf32>, tensor<16xf32>
}

// A kernel writes into the bytes in which the sum works.
func.func @scratch(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> (tensor<16xf32>, tensor<16xf32>) attributes {ckopt.arena_bytes = 256 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %s:2 = ckopt.kernel_call @start(%a) {aliases = array<i64: 0, 0>, offsets = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  // expected-error @+1 {{result 0 (bytes 128 to 192) overlaps start#1 (bytes 128 to 192), which is still needed}}
  %b = ckopt.kernel_call @f(%x) {offsets = array<i64: 128>} : (tensor<16xf32>) -> tensor<16xf32>
  %w = ckopt.kernel_call @wait(%s#0, %s#1) {aliases = array<i64: 0, 0>, offsets = array<i64: 64>} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %b, %w : tensor<16xf32>, tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @start(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.collective_start %x {collective = "all_reduce", ranks = 2 : i64} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<64xui8>
}
func.func private @wait(%r: tensor<16xf32>, %s: tensor<64xui8>) -> tensor<16xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.collective_wait %r, %s {ranks = 2 : i64} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// What is summed elsewhere must stay until the end, so the wait takes it.
func.func @let_go(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 320 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %s:2 = ckopt.kernel_call @start(%a) {offsets = array<i64: 192, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  // expected-error @+1 {{lets operand 0 of the collective go, which is in flight}}
  %w = ckopt.kernel_call @wait(%s#0, %s#1) {aliases = array<i64: 0, 0>, offsets = array<i64: 192>} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %w : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @start(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.collective_start %x {collective = "all_reduce", ranks = 2 : i64} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<64xui8>
}
func.func private @wait(%r: tensor<16xf32>, %s: tensor<64xui8>) -> tensor<16xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.collective_wait %r, %s {ranks = 2 : i64} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// Nothing reads what is in flight.
func.func @early(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 320 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %s:2 = ckopt.kernel_call @start(%a) {aliases = array<i64: 0, 0>, offsets = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  // expected-error @+1 {{touches f, which a collective in flight overwrites}}
  %b = ckopt.kernel_call @f(%a) {offsets = array<i64: 192>} : (tensor<16xf32>) -> tensor<16xf32>
  %w = ckopt.kernel_call @wait(%s#0, %s#1) {aliases = array<i64: 0, 0>, offsets = array<i64: 64>} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %b : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @start(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.collective_start %x {collective = "all_reduce", ranks = 2 : i64} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<64xui8>
}
// Every start has a wait.
func.func @never(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 320 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  // expected-error @+1 {{result 0 is in flight, and is for one wait alone}}
  %s:2 = ckopt.kernel_call @start(%a) {aliases = array<i64: 0, 0>, offsets = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %x : tensor<16xf32>
}

// -----

func.func private @f(%x: tensor<16xf32>) -> tensor<16xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.neg %x : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @start(%x: tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>) attributes {ckopt.kernel = "library"} {
  %0:2 = ckopt.collective_start %x {collective = "all_reduce", ranks = 2 : i64} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  return %0#0, %0#1 : tensor<16xf32>, tensor<64xui8>
}
func.func private @wait(%r: tensor<16xf32>, %s: tensor<64xui8>) -> tensor<16xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.collective_wait %r, %s {ranks = 2 : i64} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// What a wait gives lies where the sum was made.
func.func @moved(%x: tensor<16xf32> {ckopt.offset = 0 : i64}) -> tensor<16xf32> attributes {ckopt.arena_bytes = 320 : i64} {
  %a = ckopt.kernel_call @f(%x) {offsets = array<i64: 64>} : (tensor<16xf32>) -> tensor<16xf32>
  %s:2 = ckopt.kernel_call @start(%a) {aliases = array<i64: 0, 0>, offsets = array<i64: 64, 128>} : (tensor<16xf32>) -> (tensor<16xf32>, tensor<64xui8>)
  // expected-error @+1 {{result 0 lies at byte 192, not in the bytes of f, which it is}}
  %w = ckopt.kernel_call @wait(%s#0, %s#1) {aliases = array<i64: 0, 0>, offsets = array<i64: 192>} : (tensor<16xf32>, tensor<64xui8>) -> tensor<16xf32>
  return %w : tensor<16xf32>
}
