"""ConvLSTM1D, ConvLSTM2D and ConvLSTM3D."""

from sequence_cases import SequenceCases

from keras import layers

cases = SequenceCases("conv_lstm")
signal, images = (2, 3, 5, 2), (2, 3, 4, 5, 2)
cases.layer("conv_lstm1d", layers.ConvLSTM1D(2, 3), signal)
cases.layer(
    "conv_lstm1d_same",
    layers.ConvLSTM1D(2, 3, strides=2, padding="same", return_sequences=True, return_state=True, use_bias=False),
    signal,
)
cases.layer("conv_lstm1d_dilated", layers.ConvLSTM1D(2, 2, dilation_rate=2, go_backwards=True), signal)
cases.layer("conv_lstm2d", layers.ConvLSTM2D(2, (2, 3), return_sequences=True), images)
cases.layer("conv_lstm2d_same", layers.ConvLSTM2D(2, 3, padding="same", activation="relu", return_state=True), images)
volumes = (2, 3, 3, 4, 3, 2)
cases.layer("conv_lstm3d", layers.ConvLSTM3D(2, (2, 3, 2), return_sequences=True), volumes)
cases.layer("conv_lstm3d_same", layers.ConvLSTM3D(2, 2, strides=(1, 2, 1), padding="same"), volumes)
cases.write()
