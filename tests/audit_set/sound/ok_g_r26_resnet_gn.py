import timm
m = timm.create_model("resnet50_gn", pretrained=True).half()
