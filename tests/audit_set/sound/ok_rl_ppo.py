import torch


class PPO:
    def __init__(self, policy, lr):
        self.policy = policy
        self.opt = torch.optim.Adam(policy.parameters(), lr=lr, eps=1e-5)
        self.scaler = torch.amp.GradScaler("cuda")

    def update(self, rollout):
        for _ in range(4):
            for b in rollout:
                with torch.autocast("cuda", dtype=torch.float16):
                    logp, value, entropy = self.policy.evaluate(b.obs, b.act)
                    ratio = torch.exp(logp.float() - b.logp)
                    s1 = ratio * b.adv
                    s2 = torch.clamp(ratio, 0.8, 1.2) * b.adv
                    loss = -torch.min(s1, s2).mean() + 0.5 * (value.float() - b.ret).pow(2).mean() - 0.01 * entropy.mean()
                self.opt.zero_grad(set_to_none=True)
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.opt)
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                self.scaler.step(self.opt)
                self.scaler.update()
