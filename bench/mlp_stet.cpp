// The training step as one traced function of stet. Two threads.
#include "bench/mlp_stet.h"

#include "bench/mlp_process.h"

int main(int count, char** arguments) { return bench::mlp::process_main<bench::mlp::StetSide>(count, arguments); }
