from sklearn.preprocessing import StandardScaler
scaler = StandardScaler()
class ImgScaler:
    def update(self, new_scale): self.s = new_scale
    def get(self): return self.s
img = ImgScaler()
img.update(new_scale=512)
if img.get() < 1024: img.update(1024)
