from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


class MyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        outputs = model(**inputs)
        loss = outputs.loss
        return (loss, outputs) if return_outputs else loss


args = TrainingArguments("out", fp16=True, per_device_train_batch_size=8, max_grad_norm=1.0, adam_epsilon=1e-8)
model = AutoModelForCausalLM.from_pretrained("gpt2")
MyTrainer(model=model, args=args, train_dataset=None).train()
