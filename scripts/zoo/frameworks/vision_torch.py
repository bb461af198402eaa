"""Networks of torchvision and of timm, with random weights and images of few pixels."""

import numpy as np
import torch

generator = np.random.default_rng(0)
# Height and width, if not 96.
SIZES = {
    "inception_v3": 128, "swin_v2_t": 64, "swin_t": 64, "raft_small": 128, "ssd300_vgg16": 300, "fasterrcnn_mobilenet_v3_large_320_fpn": 128,
    "retinanet_resnet50_fpn": 128, "fcos_resnet50_fpn": 128, "maskrcnn_resnet50_fpn": 128, "keypointrcnn_resnet50_fpn": 128,
    "fasterrcnn_resnet50_fpn": 128,
}
VIDEOS = ("r3d_18", "mc3_18", "r2plus1d_18", "swin3d_t")


class Detector(torch.nn.Module):
    """A detector of objects in one image."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        found = self.network([image])
        # Scripted detectors also return losses.
        found = found[1] if isinstance(found, tuple) else found
        return tuple(found[0].values())


class Flow(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, first, second):
        return self.network(first, second, num_flow_updates=3)[-1]


class Segmentation(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, image):
        return self.network(image)["out"]


def varied(network):
    """Random statistics of batch norms, whose new ones do nothing."""
    for part in network.modules():
        if getattr(part, "running_mean", None) is not None:
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return network


def torchvision_network(name):
    import torchvision
    from torchvision.models import detection, optical_flow

    with_backbones = torchvision.models.list_models(detection) + torchvision.models.list_models(torchvision.models.segmentation)
    options = {"weights_backbone": None} if name in with_backbones else {}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=True)
    network = torchvision.models.get_model(name, weights=None, **options)
    if hasattr(network, "transform"):
        size = SIZES.get(name, 96)
        network.transform.min_size, network.transform.max_size = (size,), size
        # Random weights give all boxes alike scores.
        for part in (network, getattr(network, "roi_heads", None)):
            if hasattr(part, "score_thresh"):
                part.score_thresh = 0.0
            if hasattr(part, "detections_per_img"):
                part.detections_per_img = 10
    if name in torchvision.models.list_models(torchvision.models.segmentation):
        return Segmentation(network)
    if name in torchvision.models.list_models(detection):
        return Detector(network)
    return Flow(network) if name in torchvision.models.list_models(optical_flow) else network


def build(name, _exporter):
    torch.manual_seed(0)
    if name.startswith("timm."):
        import timm

        kind, _, size = name.removeprefix("timm.").partition("@")
        network = timm.create_model(kind, num_classes=10, **({"img_size": int(size)} if size else {}))
        size = network.default_cfg.get("input_size")[-1] if network.default_cfg.get("fixed_input_size") and not size else int(size or 96)
    else:
        network, size = torchvision_network(name), SIZES.get(name, 96)
    image = generator.standard_normal((3, 4, 64, 64) if name in VIDEOS else (3, size, size)).astype(np.float32)
    network = varied(network)
    if isinstance(network, Detector):
        return network, {"image": generator.random((3, size, size)).astype(np.float32)}
    if isinstance(network, Flow):
        return network, {"first": image[None], "second": np.roll(image, 2, 2)[None]}
    return network, {"image": image[None]}
