"""ONNX Runtime: graphs built by hand where its operators have a kernel for the case. It does not fuse chains."""

import onnx
import onnxruntime
from onnx import TensorProto, helper

from cases import Case
from systems.base import System, Unsupported


class Graph:
    """The nodes of a graph, as they are added."""

    def __init__(self):
        self.nodes = []
        self.constants = []

    def __call__(self, operator: str, *inputs: str, **attributes) -> str:
        """Adds a node, and names its result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def number(self, value: float) -> str:
        return self.constant(TensorProto.FLOAT, [], [value])

    def constant(self, dtype: int, shape: list[int], values: list) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, dtype, shape, values))
        return name


def gelu_chain(g, x):
    k = g.number
    cube = g("Mul", g("Mul", x, x), x)
    inner = g("Mul", g("Add", x, g("Mul", cube, k(0.044715))), k(0.79788456))
    product = g("Mul", g("Mul", x, k(0.5)), g("Add", g("Tanh", inner), k(1)))
    return g("Add", g("Mul", product, k(1.5)), k(0.25))


def where_mul(g, x, y):
    k = g.number
    chosen = g("Where", g("Greater", x, k(0.125)), g("Mul", x, k(2)), g("Div", x, k(2)))
    return g("Mul", chosen, y)


def bias_relu(g, x, bias):
    return g("Relu", g("Add", x, bias))


def relu_max_pool2(g, x):
    return g("MaxPool", g("Relu", x), kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4)


def relu_max_pool3(g, x):
    return g("MaxPool", g("Relu", x), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def softmax(g, x):
    return g("Softmax", x, axis=-1)


def layer_norm(g, x, weight, bias):
    return g("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-5)


def sum_rows(g, x):
    return g("ReduceSum", x, g.constant(TensorProto.INT64, [1], [1]), keepdims=0)


def cat_scale(g, *parts):
    return g("Add", g("Mul", g("Concat", *parts, axis=0), g.number(1.5)), g.number(0.25))


GRAPHS = {
    build.__name__: build
    for build in [
        gelu_chain,
        where_mul,
        bias_relu,
        relu_max_pool2,
        relu_max_pool3,
        softmax,
        layer_norm,
        sum_rows,
        cat_scale,
    ]
}


class OnnxRuntime(System):
    version = onnxruntime.__version__

    def compiled(self, case: Case):
        if case.pipeline not in GRAPHS or case.dtype != "f32":
            raise Unsupported("no graph of it was built by hand")
        names = [f"x{i}" for i in range(len(case.inputs))]
        nodes = Graph()
        result = GRAPHS[case.pipeline](nodes, *names)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, list(given.shape))
            for name, given in zip(names, case.inputs)
        ]
        outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
        graph = helper.make_graph(nodes.nodes, case.pipeline, inputs, outputs, nodes.constants)
        model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda *arrays: session.run(None, dict(zip(names, arrays)))[0]
