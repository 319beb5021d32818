import deepspeed


def main(args, model, loader):
    engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    for x, y in loader:
        loss = engine(x.half(), y)
        engine.backward(loss)
        engine.step()
