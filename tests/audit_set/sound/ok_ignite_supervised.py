import torch


def supervised_training_step_amp(model, optimizer, loss_fn, device="cuda", scaler=False, gradient_accumulation_steps=1):
    def update(engine, batch):
        if (engine.state.iteration - 1) % gradient_accumulation_steps == 0:
            optimizer.zero_grad()
        model.train()
        x, y = batch
        with torch.autocast(device, enabled=True):
            output = model(x)
            loss = loss_fn(output, y)
        if scaler:
            scaler.scale(loss / gradient_accumulation_steps).backward()
            if engine.state.iteration % gradient_accumulation_steps == 0:
                scaler.step(optimizer)
                scaler.update()
        else:
            (loss / gradient_accumulation_steps).backward()
            if engine.state.iteration % gradient_accumulation_steps == 0:
                optimizer.step()
        return loss.item()

    return update
