"""An epoch over a folder of images (class folders of grey PNG files) in tf.data or in torch's DataLoader: the peers of
bench/image_pipeline.cpp, which also writes such a folder.

    image_pipeline.py tf|torch FOLDER [epochs]

Decode, a random crop after padding by 2, a random flip, shuffle, batches of 64, prefetch; two workers. Prints, for
every epoch, the seconds it took and the mean of all pixels, by which one sees that all images came.
"""

import glob
import os
import sys
import time

WORKERS = 2
BATCH = 64


def listed(folder):
    names = sorted(os.listdir(folder))
    paths, labels = [], []
    for number, name in enumerate(names):
        for path in sorted(glob.glob(os.path.join(folder, name, "*.png"))):
            paths.append(path)
            labels.append(number)
    return paths, labels


def run(epochs, batches, count):
    for epoch in range(epochs):
        begin = time.perf_counter()
        total, images = 0.0, 0
        for mean, size in batches():
            total += mean * size
            images += size
        seconds = time.perf_counter() - begin
        assert images == count, images
        print(f"epoch {epoch + 1}: {seconds:.3f} s, {images / seconds:.0f} images a second, mean {total / images:.5f}", flush=True)


def tf_batches(paths, labels):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def load(path, label):
        image = tf.io.decode_png(tf.io.read_file(path), channels=1)
        image = tf.pad(image, [[2, 2], [2, 2], [0, 0]])
        image = tf.image.random_crop(image, [28, 28, 1])
        image = tf.image.random_flip_left_right(image)
        return tf.cast(image, tf.float32) / 255, label

    data = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(len(paths))
    options = tf.data.Options()
    options.threading.private_threadpool_size = WORKERS
    data = data.map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE).with_options(options)

    def batches():
        for image, _ in data:
            array = image.numpy()
            yield float(array.mean()), len(array)

    return batches


def torch_batches(paths, labels):
    import torch
    from PIL import Image
    from torchvision import transforms

    change = transforms.Compose(
        [transforms.RandomCrop(28, padding=2), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    )

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths)

        def __getitem__(self, number):
            with Image.open(paths[number]) as image:
                return change(image), labels[number]

    loader = torch.utils.data.DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=WORKERS, prefetch_factor=4,
                                         persistent_workers=True)

    def batches():
        for image, _ in loader:
            yield float(image.mean()), len(image)

    return batches


def main():
    peer, folder = sys.argv[1:3]
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    paths, labels = listed(folder)
    run(epochs, {"tf": tf_batches, "torch": torch_batches}[peer](paths, labels), len(paths))


if __name__ == "__main__":
    main()
