# A classifier of the backbone's last map.
_base_ = '../models/classifier_ptnt_ti.py'
