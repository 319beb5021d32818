# expect: R27
import asyncio, torch
async def predict(model, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return await asyncio.to_thread(model, x)
