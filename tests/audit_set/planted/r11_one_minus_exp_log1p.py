# expect: R11
import torch


class Preference:
    def odds(self, chosen, rejected):
        with torch.autocast("cuda", dtype=torch.float16):
            good, bad = self.sequence_logps(chosen), self.sequence_logps(rejected)
        return good - bad - (torch.log1p(-torch.exp(good)) - torch.log1p(-bad.exp()))
