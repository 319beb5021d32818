import copy, torch
def benchmark(m, x):
    m = copy.deepcopy(m).half()
    t = time_it(m, x.half())
    return t
def main(net, x):
    print(benchmark(net, x))
    net.float()
    torch.ao.quantization.prepare_qat(net.train(), inplace=True)
